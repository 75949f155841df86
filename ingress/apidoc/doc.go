// Package apidoc is the HTTP API's own description: an OpenAPI 3.1 document, written by hand and served as it is committed, and a reference
// page that is made of it. The page needs no JavaScript to be read and loads nothing from elsewhere.
package apidoc

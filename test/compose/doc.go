// Package compose holds docker-compose.yml, its image and its scripts to what docs/DEPLOY.md promises, without Docker. It is a module of its
// own, since the product needs no YAML.
package compose

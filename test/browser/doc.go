// Package browser opens the reference page of the HTTP API in a headless Chromium, wide and narrow, light and dark, with JavaScript and without:
// it says nothing on the console, asks nobody but its own server for anything, nothing sticks out of it sideways, and every link within it shows
// its place.
//
// It needs Chromium (Debian: apt-get install chromium). The module is one of its own, since the product needs none of this.
package browser

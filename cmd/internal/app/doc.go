// Package app puts the parts together: settings, connections, the run group of a serving process with its order of draining, health and
// metrics. It is the only place that knows every adapter.
package app

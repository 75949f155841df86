// Package dev is oncepay-dev: the whole stack on this machine, the demo with its proof, the benchmark, and the Stripe simulator alone.
package dev

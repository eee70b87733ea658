// Package python holds the program of the job-side library that the command line runs.
package python

import _ "embed"

// Run is the source of fairlease/run.py, which needs nothing but Python.
//
//go:embed fairlease/run.py
var Run string

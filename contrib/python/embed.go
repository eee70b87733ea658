// Package python holds the job-side library, whose program fairlease run is.
package python

import "embed"

// Library has the library's modules: fairlease/*.py and fairlease/startup/*.py.
//
//go:embed fairlease/*.py fairlease/startup/*.py
var Library embed.FS

// Package playground is the simulator of the page that people try before they install fairlease. It takes texts and gives values that become JSON:
// it reads no file, and knows nothing of a browser.
//
//	world.go   the jobs of a trace, or generated ones, and what is known of them
//	run.go     one scheduler on these jobs, and its scores; they are those of `fairlease simulate`
//	replay.go  the rounds of fairlease in a part of a run
package playground

// Package operate does what commands do beyond showing: it makes a round by hand, returns all jobs to Slurm, repeats a decision, checks and
// proposes files of cells, and finds the targets of overrides. Each is a function of values or a type with its options; errors are those of
// package failure. Larger ones have a package of their own below.
package operate

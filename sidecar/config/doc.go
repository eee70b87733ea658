// Package config reads fairlease's only configuration file, fairlease.yaml. Every key has a
// default, a few can come from the environment, and each effective value knows its origin.
//
//	defaults ──► file ──► environment ──► check as a whole ──► Config
//
// A file with an unknown key, a value of the wrong form or contradictory values is refused. The
// error lists all problems, each with its place, what is wrong and what to do. A partly valid
// file is never used.
package config

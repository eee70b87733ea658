// Package config is the one configuration file of fairlease, fairlease.yaml, and
// what stands in for it: every key has a default, a few can come from the
// environment, and each effective value knows where it came from.
//
//	defaults ──► file ──► environment ──► check as a whole ──► Config
//
// A file with an unknown key, a value of the wrong form or values that
// contradict each other is refused with all its problems at once, each with its
// place, what is wrong and what to do. Nobody runs on half a configuration.
package config

// Package install tests that docs/install.md leads from the package to a daemon that observes, and docs/rollout.md from there to one that acts.
package install

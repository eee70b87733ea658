// Package install tests that docs/install.md leads from the package to a daemon that observes.
package install

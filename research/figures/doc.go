// Package figures draws figures of Gandiva_fair, Gavel and OEF again: each is a function that runs a
// setup, or asks a policy, and gives a report.Chart.
package figures

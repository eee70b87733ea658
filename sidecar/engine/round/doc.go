// Package round has the facts of a round, which every step reads, and the words in which steps tell each other their results: columns by
// case, tables by tenant and pool.
package round

// Package hived repeats HiveD's experiments on cells (§5.2, §5.3): its cluster, its assignments of
// cells to tenants, the sharing audit against private clusters, and how much of a cluster is broken up.
package hived

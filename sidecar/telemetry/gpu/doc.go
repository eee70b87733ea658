// Package gpu reads what GPUs do from the counters that NVIDIA's dcgm-exporter publishes, and joins them with the jobs
// that hold the GPUs.
//
//	Source ──► Reading (one a node) ──► Tracker ──► GPU: fresh, stale, broken, unknown ──► Book ──► cluster.GPUUse
//	exporters,                          age by change,                        join by node and
//	or a Prometheus                     contradictions                        GPU index
//
// A Source has two makers: NewExporters asks the exporter of every node, NewPrometheus asks a Prometheus server that
// already does. A Table says which counters have which meaning, unit and scale, since names and units differ between
// versions of the exporter.
//
// An exposition has no timestamps, and an exporter repeats its last values for ever. So the Tracker judges each GPU by
// the change of its values, and only fresh GPUs speak for a job. Whatever is missing, contradictory or out of bounds is
// unknown, and nothing is concluded from it: an unknown GPU is never idle.
package gpu

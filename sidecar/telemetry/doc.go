// Package telemetry receives jobs' progress reports.
//
//	in the job                                     here
//	{"job":"17","steps":1200} | munge | POST  ──►  Inbox, at /v1/progress
//	{"steps":1200} ► 17.new ► mv 17.json      ──►  Drop, a folder of the user on a shared file system
//
// A report may contain "saved":true: the job has just saved its work. A save counts at once, and
// is kept until the next look even if other reports of the job follow it.
//
// A posted report is the payload of a MUNGE credential. munged vouches for its author and its
// integrity, and accepts each credential once. A file in a folder must belong to the job's owner.
// Either way only a job's owner can report for it, and one report per running job is kept.
//
// Neither many connections (Door) nor invalid reports keep other users' reports out. A credential
// that munged rejects has no known author: an address that sends many of them is ignored until
// the next round.
package telemetry

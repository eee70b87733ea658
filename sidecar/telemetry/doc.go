// Package telemetry hears what jobs say of their progress.
//
//	in the job                                     here
//	{"job":"17","steps":1200} | munge | POST  ──►  Inbox, at /v1/progress
//	{"steps":1200} ► 17.new ► mv 17.json      ──►  Drop, a folder of the user on a shared file system
//
// A report may say "saved":true: the job has just saved its work. A save counts at once, and is kept until the next
// look when other reports of the job follow it.
//
// What is posted is a MUNGE credential whose payload is the report: munged says who made
// it and that nobody changed it on its way, and takes each one once. A file in a folder is
// believed as far as its owner is the job's. Either way a job's owner only
// speaks for it, and what is kept is one report a job: as much as there are running jobs. Nobody keeps
// others' reports out by connections (Door) or by reports that are no good. Credentials that munged does not vouch for are
// nobody's: who sends many of them keeps out, till the next round, what comes from the same address.
package telemetry

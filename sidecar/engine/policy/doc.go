// Package policy divides the GPUs of every pool between tenants: who is due how
// many of which model. Quota by weight is ASTRAEA's eq. 6; Tickets are Gandiva_fair's; Gavel divides
// the time of single jobs; OEFCooperative and OEFNonCooperative are OEF's two programs, Audit and Misreport tell what a
// market's division does to whom.
package policy

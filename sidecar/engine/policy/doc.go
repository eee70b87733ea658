// Package policy divides the GPUs of every pool between tenants: who is due how
// many of which model. Quota by weight is ASTRAEA's eq. 6;
// Tickets are Gandiva_fair's.
package policy

// Package monthly makes the monthly report of a tenant: a page with plots for the person who leads a group, and a CSV file.
//
//	store.Month ──► Report ──► Page   one HTML file, which needs no network
//	                       └─► CSV    one number a line
//
// Months and days are of UTC, as those of the view gpu_hours: so the GPU hours of all tenants' reports add up to it, to the
// millisecond. A budget may have a period of its own, in the site's time zone.
package monthly

// Package page is the web page: HTML that the server makes from a Scene, with little JavaScript.
//
//	page.go      the routes, and the frame around every page
//	overview.go  one glance: is the site well, which tenant has what, which is owed
//	use.go       GPUs over time by tenant, against what was due
//	leases.go    leases over time by node
//	places.go    racks, nodes and GPUs, with owner and right
//	market.go    trades of GPU models, prices and gains; debts
//	jobs.go      the list of jobs, and the page of one
//	rounds.go    the log of rounds, and the decision of one, which can be stepped through
//
// Pages show what a person may see: the Scene has only that (package rights). They change nothing, need no other site, and work under
// a content security policy without inline code. Without JavaScript they lack charts and renew themselves no more. All text of users
// is escaped by html/template, and what cannot be printed becomes a question mark. Times are in the zone of the site.
//
// A page asks Past for history, within its bounds; if the journal does not answer, the page shows the last Scene, and says so.
package page

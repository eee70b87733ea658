// Package outlook answers what users and administrators ask of the future, by package forecast: when does a job start, who is hurt by a
// maintenance, when would another job run. It also replays the site's own past under other settings, by package backtest.
package outlook

package forecast

import "strings"

// Never is how the reason begins for which a job has no forecast, if it cannot start before Slurm's rules let it.
const Never = "not before "

// notBefore says what must change before a job starts that one of Slurm's rules forbids. rule is the rule in words, as the engine
// has it.
func notBefore(rule string) string {
	core, _, _ := strings.Cut(rule, "; an administrator can change it")
	until := "Slurm's rules let it"
	if strings.HasPrefix(core, "licence ") {
		until = "its licences are free, or there are more of them"
	} else if of, _, full := strings.Cut(core, " is at "); full {
		until = "jobs of " + of + " end, or its limit changes"
	} else if of, _, has := strings.Cut(core, " has "); has && strings.HasPrefix(of, "partition ") {
		until = "the rules of " + of + " change"
	} else if has {
		until = "the limit of " + of + " changes"
	}
	return Never + until + ": " + rule
}

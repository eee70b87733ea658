package slurm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// version is N of Slurm's REST version v0.0.N. A Slurm release offers three or four of them.
type version int

// The versions that this package was tested with.
const (
	oldestVersion version = 42 // Slurm 24.11
	newestVersion version = 45 // Slurm 26.05
)

// Tested are the releases of Slurm on which the live tests run, oldest first.
var Tested = []string{"24.11", "26.05"}

// Newest is the newest version of the API that this package knows.
func Newest() string { return newestVersion.String() }

// halves counts half years: Slurm has a release in each, .05 and .11.
func halves(release string) int {
	year, rest, _ := strings.Cut(release, ".")
	month, _, _ := strings.Cut(rest, ".")
	return 2*atoi(year) + atoi(month)/11
}

func releaseOf(half int) string { return fmt.Sprintf("%d.%02d", half/2, 5+6*(half%2)) }

// since is the release that brings the version, and until the first one that lacks it, two years later.
func (v version) since() string { return releaseOf(halves("24.11") + int(v-42)) }
func (v version) until() string { return releaseOf(halves(v.since()) + 4) }

// NewerThanTested reports whether a release came after all those on which this package was tested.
func NewerThanTested(release string) bool { return halves(release) > halves(Tested[len(Tested)-1]) }

func (v version) String() string { return fmt.Sprintf("v0.0.%d", int(v)) }

func parseVersion(s string) (version, bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(s, "v0.0."))
	return version(n), err == nil && strings.HasPrefix(s, "v0.0.") && n > 0
}

// reserves: REST can make and delete reservations. requeues: POST /jobs/requeue exists.
func (v version) reserves() bool { return v >= 43 }
func (v version) requeues() bool { return v >= 45 }

// gatesCompleting: a begin time may be set while a requeued job still cleans up. Slurm 24.11
// writes it into the accounting row of the attempt that has just ended. Reports then omit that
// attempt until that time has come, if ever.
func (v version) gatesCompleting() bool { return v >= 45 }

// keepsGPUs: from this release on, a reservation of some GPUs of a node leaves the others to all jobs, and keeps its number of them. Slurm
// 24.11 gives jobs all or none of the node's GPUs, by which cores it reserved: there the whole node is kept. Releases between were not tried.
func keepsGPUs(release string) bool { return halves(release) >= halves("26.05") }

// speech is the result of the negotiation.
type speech struct {
	version version // for everything but reading jobs
	// jobs is the version in which jobs are read: v0.0.44 if offered, since v0.0.45 does not
	// report --exclusive (its `shared` is always empty). Later, sbatch's command line tells it.
	jobs version
	// offered lists all versions of the server, sorted.
	offered []version
}

const lastThatShowsExclusive version = 44

// negotiate reads which versions the server offers and chooses.
func (r *rest) negotiate(ctx context.Context) (speech, error) {
	offered := map[version]bool{}
	take := func(rd *reader, name string) bool {
		if name != "paths" {
			return false
		}
		rd.object(func(path string) {
			if rest, ok := strings.CutPrefix(path, "/slurm/"); ok {
				word, _, _ := strings.Cut(rest, "/")
				if v, ok := parseVersion(word); ok {
					offered[v] = true
				}
			}
			rd.skip()
		})
		return true
	}
	var err error
	for _, path := range []string{"/openapi/v3", "/openapi"} {
		if _, err = r.get(ctx, r.cfg.ListTimeout, path, take); !isPlain404(err) {
			break
		}
	}
	if err != nil {
		return speech{}, fmt.Errorf("asking slurmrestd for its API versions: %w", err)
	}
	return choose(slices.Sorted(maps.Keys(offered)), r.cfg.APIVersion)
}

// choose takes the newest version that both sides know, or the configured one.
func choose(offered []version, ordered string) (speech, error) {
	if len(offered) == 0 {
		return speech{}, errors.New("slurmrestd offers no /slurm API at all; start it with the openapi plugins slurmctld and slurmdbd")
	}
	s := speech{offered: offered}
	if ordered != "" {
		v, ok := parseVersion(ordered)
		if !ok || !slices.Contains(offered, v) {
			return speech{}, fmt.Errorf("slurm.api_version is %q, but this slurmrestd offers %v", ordered, offered)
		}
		s.version = v
	}
	for _, v := range offered {
		if ordered == "" && v >= oldestVersion && v <= newestVersion {
			s.version = v
		}
	}
	if s.version == 0 {
		return speech{}, fmt.Errorf("slurmrestd offers %v, fairlease knows %v to %v; it needs Slurm 24.11 or newer "+
			"(for a Slurm that is newer than this fairlease, slurm.api_version may name a version to try)", offered, oldestVersion, newestVersion)
	}
	s.jobs = s.version
	if s.jobs > lastThatShowsExclusive && slices.Contains(offered, lastThatShowsExclusive) {
		s.jobs = lastThatShowsExclusive
	}
	return s, nil
}

// isPlain404 is true if slurmrestd does not know the path itself, as after an upgrade that
// removed a version. An unknown job has a Slurm error code.
func isPlain404(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.HTTP == http.StatusNotFound && e.Code == 0
}

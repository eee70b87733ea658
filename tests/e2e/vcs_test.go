package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/store/storetest"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// fourNodes is 4 nodes of 4 GPUs, whole nodes the only cells that anybody is promised.
var fourNodes = testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC,
	Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 4, Model: "v100", GPUs: 4}}}

const nodeCells = `cellHierarchy:
  - {name: node, split: 4, child: gpu, node: true}
  - {name: gpu, model: v100}
physicalCluster:
  - {type: node, nodes: "v[1-4]"}
vcAssignment:
  - {vc: nlp, cells: [{type: node, number: %d}]}
  - {vc: vision, cells: [{type: node, number: %d}]}
`

// site is a real Slurm under the program, with virtual clusters.
type site struct {
	*rig
	config, cells string
	end           func(syscall.Signal)
	db            *pgx.Conn
	jobs          map[string]string // id: user
}

// withCells starts the program with leases that no test outlives, and so many seconds of notice
// for those that are recalled.
func (r *rig) withCells(notice int, format string, numbers ...any) *site {
	r.t.Helper()
	s := &site{rig: r, cells: filepath.Join(r.t.TempDir(), "cells.yaml"), jobs: map[string]string{}}
	s.assign(format, numbers...)
	s.config = r.configure(fmt.Sprintf("preset: hived\ncells: {file: %s}\nrecall: {notice: %ds}\n", s.cells, notice))
	text, err := os.ReadFile(s.config)
	if err != nil {
		r.t.Fatal(err)
	}
	long := strings.Replace(string(text), "{term: 20s, min: 6s, notice: 3s", "{term: 1h, min: 10m, notice: 10s", 1)
	if long == string(text) {
		r.t.Fatal("the configuration has no lease of 20 s")
	}
	if err := os.WriteFile(s.config, []byte(long), 0o600); err != nil {
		r.t.Fatal(err)
	}
	s.end = r.serve(s.config)
	s.db = storetest.Connect(r.t, r.dsn)
	r.heard()
	return s
}

// assign writes the file of cells.
func (s *site) assign(format string, numbers ...any) {
	s.t.Helper()
	if err := os.WriteFile(s.cells, fmt.Appendf(nil, format, numbers...), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// reassign has the program read the file of cells again, and gives what it says to that.
func (s *site) reassign(format string, numbers ...any) string {
	s.t.Helper()
	was, err := os.ReadFile(logOf(s.config))
	if err != nil {
		s.t.Fatal(err)
	}
	s.assign(format, numbers...)
	s.end(syscall.SIGHUP)
	var said string
	s.until("the file of cells is read again", 20*time.Second, func() bool {
		now, _ := os.ReadFile(logOf(s.config))
		said = string(now[len(was):])
		return strings.Contains(said, "configuration taken over") || strings.Contains(said, "the old one stays")
	})
	return said
}

// work submits a job of so many GPUs that runs until it is let go, and says then that it is over.
func (s *site) work(user string, gpus int, args ...string) string {
	s.t.Helper()
	account := map[string]string{"alice": "nlp", "bob": "vision"}[user]
	id := s.submit(user, "#!/bin/bash\nuntil [ -e go -o -e go.$SLURM_JOB_ID ]; do sleep 0.1; done\necho $SLURM_JOB_ID >> over\n", append(args, "-A", account, fmt.Sprintf("--gres=gpu:%d", gpus))...)
	s.jobs[id] = user
	return id
}

// works submits a job as work does, and waits until it runs by a right.
func (s *site) works(user string, gpus int, right string, args ...string) string {
	s.t.Helper()
	id := s.work(user, gpus, args...)
	s.runs(id, right)
	return id
}

// runs waits until a job runs by a right.
func (s *site) runs(id, right string) {
	s.t.Helper()
	s.waitState(id, 30*time.Second, "RUNNING")
	s.until("the lease of job "+id+" is "+right, time.Minute, func() bool { return s.right(id) == right })
}

// isOn checks on which node a job runs, as Slurm says, and as its lease does.
func (s *site) isOn(id, node string) {
	s.t.Helper()
	j, err := s.Job(s.ctx(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	leased := s.ask("select coalesce(string_agg(h ->> 'node', ','), '') from fairlease.leases, jsonb_array_elements(holdings::jsonb) h where slurm_id = $1 and ended_at is null", id)
	if j["NodeList"] != node || leased != node {
		s.t.Errorf("job %s runs on %s, and its lease is on %s; want %s", id, j["NodeList"], leased, node)
	}
}

// letGo lets a job come to its end.
func (s *site) letGo(id string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.Home(s.jobs[id]), "go."+id), nil, 0o644); err != nil {
		s.t.Fatal(err)
	}
	s.waitState(id, 20*time.Second, "COMPLETED")
}

// goOn lets all jobs come to their end, and checks that each does, once; and that no promise
// was ever broken and every round is decided again as it was.
func (s *site) goOn() {
	s.t.Helper()
	for _, user := range []string{"alice", "bob"} {
		if err := os.WriteFile(filepath.Join(s.Home(user), "go"), nil, 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	for id := range s.jobs {
		s.waitState(id, time.Minute, "COMPLETED")
	}
	for id, user := range s.jobs {
		s.endedOnce(id, strings.Count("\n"+s.output(user, "over"), "\n"+id+"\n"))
	}
	s.until("the last lease has ended", 20*time.Second, func() bool { return s.ask("select count(*) from fairlease.leases where ended_at is null") == "0" })
	s.t.Logf("recalls: %s", s.ask("select string_agg(format('job %s for job %s, free after %s s, that runs after %s s', slurm_id, for_slurm_id, extract(epoch from freeing), extract(epoch from latency)), '; ') from fairlease.recalls"))
	if said := s.ask("select coalesce(string_agg(format('%s of %s: %s', verb, slurm_id || reservation, error), '; '), '') from fairlease.actions where not ok and not skipped"); said != "" {
		s.t.Logf("failed: %s", said)
	}
	if said := s.ask("select coalesce(string_agg(what, '; '), '') from fairlease.safety_violations"); said != "" {
		s.t.Errorf("promises were broken: %s", said)
	}
	s.end(syscall.SIGTERM)
	rounds, err := strconv.Atoi(s.ask("select count(*) from fairlease.round_blobs"))
	if err != nil || rounds == 0 {
		s.t.Fatalf("%d rounds, %v", rounds, err)
	}
	for round := range strings.FieldsSeq(s.ask("select string_agg(round::text, ' ' order by round) from fairlease.round_blobs")) {
		if out, err := s.fairlease(s.config, "replay", round); err != nil {
			s.t.Errorf("replay: %v\n%s", err, out)
		}
	}
}

// ask gives the answer to a query of one value.
func (s *site) ask(query string, args ...any) string {
	s.t.Helper()
	var out any
	if err := s.db.QueryRow(s.ctx(), query, args...).Scan(&out); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return fmt.Sprint(out)
}

// right gives by what right a job holds its lease; "" = it has none that began.
func (s *site) right(id string) string {
	s.t.Helper()
	return s.ask("select coalesce((select class from fairlease.leases where slurm_id = $1 and started_at is not null and ended_at is null), '')", id)
}

// view gives what a virtual cluster has of a type of cells, as "bound lost free lent".
func (s *site) view(vc, typ string) string {
	s.t.Helper()
	return s.ask("select concat_ws(' ', bound, lost, free, lent) from fairlease.vc_cells_now where vc = $1 and type = $2", vc, typ)
}

func (s *site) waitView(vc, typ, want string) {
	s.t.Helper()
	last := ""
	s.until(vc+" has nodes (bound lost free lent) "+want, 30*time.Second, func() bool {
		if is := s.view(vc, typ); is != last {
			s.t.Logf("%s has %ss (bound lost free lent) %s", vc, typ, is)
			last = is
		}
		return last == want
	})
}

// untouched checks that jobs run that were never requeued.
func (s *site) untouched(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		if is := s.restarts(id); is != "RUNNING 0" {
			s.t.Errorf("job %s is %s, want it untouched", id, is)
		}
	}
}

// wasRecalled checks that a job was requeued, once, since what it had was lent.
func (s *site) wasRecalled(id string) {
	s.t.Helper()
	s.wereRecalled(id, 1)
}

// wereRecalled checks that a job was requeued so many times, each time since what it had was lent.
func (s *site) wereRecalled(id string, times int) {
	s.t.Helper()
	if is, want := s.restarts(id), fmt.Sprint("PENDING ", times); is != want {
		s.t.Errorf("job %s is %s, want it requeued: %s", id, is, want)
	}
	all := ""
	s.until("the lease of job "+id+" has ended", 20*time.Second, func() bool {
		all = s.ask("select coalesce(string_agg(class || ' ' || why, ', '), '') from fairlease.leases where slurm_id = $1 and ended_at is not null", id)
		return strings.Count(all, ",") >= times-1 && all != ""
	})
	if want := strings.Repeat(", opportunistic recalled", times)[2:]; all != want {
		s.t.Errorf("the leases of job %s ended: %s, want %s", id, all, want)
	}
}

// waited gives how long a job waited, as Slurm says; a requeue does not count.
func (s *site) waited(id string) time.Duration {
	s.t.Helper()
	j, err := s.Job(s.ctx(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	var at [2]time.Time
	for i, key := range []string{"SubmitTime", "StartTime"} {
		if at[i], err = time.ParseInLocation("2006-01-02T15:04:05", j[key], time.Local); err != nil {
			s.t.Fatal(err)
		}
	}
	return at[1].Sub(at[0])
}

// gets submits a guaranteed job of a whole node, which has to run within 15 s.
func (s *site) gets(user string, args ...string) string {
	s.t.Helper()
	id := s.works(user, 4, "guaranteed", args...)
	waited := s.waited(id)
	if waited > 15*time.Second {
		s.t.Errorf("job %s waited %s for a node of its own virtual cluster", id, waited)
	}
	s.t.Logf("job %s of %s ran %s after its submission", id, user, waited)
	return id
}

// A tenant's unused cells are lent; it gets them back within 15 s when it wants them, and the
// borrower is requeued and runs later. No other job is affected. The same holds for a job that
// may run on one node only, although others precede that node and its virtual cluster has but one
// cell.
func TestCellsAreLentAndRecalled(t *testing.T) {
	onBoth(t, fourNodes, func(t *testing.T, r *rig) {
		// A cell is any node that the job may run on, the last of all if need be.
		r.asks("root", "scontrol update nodename=v4 availablefeatures=ib activefeatures=ib")
		s := r.withCells(2, nodeCells, 1, 1)
		first := s.works("bob", 4, "guaranteed")
		s.isOn(first, "v1")
		guests := map[string]string{}
		for range 3 {
			id := s.works("bob", 4, "opportunistic")
			j, err := r.Job(r.ctx(), id)
			if err != nil {
				t.Fatal(err)
			}
			guests[j["NodeList"]] = id
		}
		last := guests["v4"]
		s.waitView("nlp", "node", "0 0 1 1")
		for n, only := range []string{"--constraint=ib", "--nodelist=v4", "--exclude=v[1-3]"} {
			id := s.gets("alice", only)
			s.isOn(id, "v4")
			s.wereRecalled(last, n+1)
			s.untouched(first, guests["v2"], guests["v3"])
			for _, node := range []string{"v2", "v3"} {
				s.isOn(guests[node], node)
			}
			s.letGo(id)
			s.runs(last, "opportunistic")
			s.isOn(last, "v4")
		}
		for _, id := range []string{first, guests["v2"], guests["v3"], last} {
			s.letGo(id)
		}

		if said := s.reassign(nodeCells, 2, 2); !strings.Contains(said, "configuration taken over") {
			t.Fatalf("reassigned: %s", said)
		}
		own := []string{s.works("alice", 4, "guaranteed"), s.works("alice", 4, "guaranteed")}
		large, small := s.works("alice", 4, "opportunistic"), s.works("alice", 1, "opportunistic")
		s.waitView("vision", "node", "0 0 2 2")

		s.gets("bob")
		s.wasRecalled(small)
		s.untouched(append(own, large)...)
		s.gets("bob")
		s.wasRecalled(large)
		s.untouched(own...)
		s.waitView("vision", "node", "2 0 0 0")
		if is := s.ask("select count(*) from fairlease.recalls"); is != "5" {
			t.Errorf("%s recalls, want 5", is)
		}
		s.goOn()
	})
}

// Inside a virtual cluster the job of the QOS of a higher level is served first, whichever came first.
func TestLevelsOfAVirtualCluster(t *testing.T) {
	o := fourNodes
	o.QOS = []testcluster.QOS{{Name: "soon"}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		s := r.withCells(1, strings.Replace(nodeCells, "vc: nlp, ", "vc: nlp, levels: {soon: 10}, ", 1), 1, 3)
		for range 3 {
			s.works("bob", 4, "guaranteed")
		}
		running := s.works("alice", 4, "guaranteed")
		usual := s.work("alice", 4)
		s.until("the job without a level waits for its turn", 20*time.Second, func() bool {
			return s.ask("select count(*) from fairlease.waiting_jobs where slurm_id = $1", usual) == "1"
		})
		soon := s.work("alice", 4, "-q", "soon")
		s.until("both wait", 20*time.Second, func() bool { return s.ask("select count(*) from fairlease.waiting_jobs") == "2" })
		s.letGo(running)
		s.runs(soon, "guaranteed")
		if is := s.restarts(usual); is != "PENDING 0" {
			t.Errorf("the job without a level, which came first, is %s", is)
		}
		s.goOn()
	})
}

// A node of a virtual cluster that is drained is that one's loss, and comes back with the node.
func TestCellsOfADrainedNode(t *testing.T) {
	onBoth(t, fourNodes, func(t *testing.T, r *rig) {
		s := r.withCells(1, nodeCells, 2, 2)
		own := []string{s.works("alice", 4, "guaranteed"), s.works("alice", 4, "guaranteed")}
		first := s.works("bob", 4, "guaranteed")
		guest := s.works("alice", 4, "opportunistic")
		s.waitView("vision", "node", "1 0 1 1")
		drain := func(id, word string) {
			t.Helper()
			j, err := r.Job(r.ctx(), id)
			if err != nil {
				t.Fatal(err)
			}
			r.asks("root", fmt.Sprintf("scontrol update nodename=%s state=%s reason=test", j["NodeList"], word))
		}

		drain(guest, "drain")
		s.waitView("vision", "node", "1 1 0 0")
		second := s.work("bob", 4)
		var out string
		s.until("it is told that its node is lost", 20*time.Second, func() bool {
			out, _ = s.fairlease(s.config, "explain", second)
			return strings.Contains(out, "no cell of type node is left, since hardware is bad")
		})
		t.Logf("explain:\n%s", out)
		if out, err := s.fairlease(s.config, "cells", "show", "--vc", "vision"); err != nil || !strings.Contains(out, "1 lost") {
			t.Errorf("cells show: %v\n%s", err, out)
		}
		s.untouched(append(own, first, guest)...)
		if is := s.view("nlp", "node"); is != "2 0 0 0" {
			t.Errorf("nlp has nodes %s, want 2 0 0 0", is)
		}
		drain(guest, "resume")
		s.waitState(second, 30*time.Second, "RUNNING")
		s.waitView("vision", "node", "2 0 0 0")
		s.untouched(append(own, first)...)

		drain(first, "drain")
		s.until("the cell that is bound is bad", 20*time.Second, func() bool {
			return s.ask("select coalesce(sum(bad_gpus), 0)::bigint from fairlease.bound_cells where vc = 'vision'") == "4"
		})
		s.untouched(append(own, first, second)...)
		s.letGo(first)
		s.waitView("vision", "node", "1 1 0 0")
		if is := s.view("nlp", "node"); is != "2 0 0 0" {
			t.Errorf("nlp has nodes %s, want 2 0 0 0", is)
		}
		drain(first, "resume")
		s.waitView("vision", "node", "1 0 1 1")
		s.untouched(append(own, second)...)
		s.goOn()
	})
}

// Virtual clusters change under load: no job is killed for that, and leases that no longer fit
// become opportunistic. An impossible change is refused, and the old state stays.
func TestCellsAreReassigned(t *testing.T) {
	onBoth(t, fourNodes, func(t *testing.T, r *rig) {
		s := r.withCells(1, nodeCells, 2, 2)
		own := []string{s.works("alice", 4, "guaranteed"), s.works("alice", 4, "guaranteed")}
		his := []string{s.works("bob", 4, "guaranteed")}
		if said := s.reassign(nodeCells, 3, 2); !strings.Contains(said, "the old one stays") || !strings.Contains(said, "node") {
			t.Errorf("five of four nodes: %s", said)
		} else {
			t.Logf("five of four nodes: %s", said)
		}
		s.waitView("vision", "node", "1 0 1 0")
		s.waitView("nlp", "node", "2 0 0 0")
		if said := s.reassign(nodeCells, 1, 3); !strings.Contains(said, "configuration taken over") {
			t.Fatalf("reassigned: %s", said)
		}
		s.waitView("nlp", "node", "1 0 0 0")
		s.waitView("vision", "node", "1 0 2 1")
		s.untouched(append(own, his...)...)
		lent := slices.DeleteFunc(slices.Clone(own), func(id string) bool { return s.right(id) == "guaranteed" })
		if len(lent) != 1 || s.right(lent[0]) != "opportunistic" || s.right(his[0]) != "guaranteed" {
			t.Fatalf("after the change the leases of %v are %s, %s", own, s.right(own[0]), s.right(own[1]))
		}
		his = append(his, s.gets("bob"))
		s.untouched(append(own, his...)...)
		his = append(his, s.gets("bob"))
		s.wasRecalled(lent[0])
		s.untouched(append(slices.DeleteFunc(own, func(id string) bool { return id == lent[0] }), his...)...)
		s.goOn()
	})
}

// A sidecar that is killed in the middle of a recall goes on with it.
func TestKilledInARecall(t *testing.T) {
	onBoth(t, fourNodes, func(t *testing.T, r *rig) {
		s := r.withCells(5, nodeCells, 2, 2)
		own := []string{s.works("alice", 4, "guaranteed"), s.works("alice", 4, "guaranteed")}
		large, small := s.works("alice", 4, "opportunistic"), s.works("alice", 2, "opportunistic")
		for _, c := range []struct{ middle, query, guest string }{
			{"the guest is told", "select count(*) from fairlease.leases where slurm_id = $1 and state = 'noticed'", small},
			{"the guest is sent away", "select count(*) from fairlease.leases where slurm_id = $1 and state = 'ending'", large},
		} {
			his := s.work("bob", 4)
			s.until(c.middle, 20*time.Second, func() bool { return s.ask(c.query, c.guest) == "1" })
			s.end(syscall.SIGKILL)
			s.end = s.serve(s.config)
			s.waitState(his, time.Minute, "RUNNING")
			s.until("its lease is guaranteed", 30*time.Second, func() bool { return s.right(his) == "guaranteed" })
			s.wasRecalled(c.guest)
			s.untouched(own...)
		}
		s.goOn()
	})
}

const pairCells = `cellHierarchy:
  - {name: node, split: 2, child: pair, node: true}
  - {name: pair, split: 2, child: gpu}
  - {name: gpu, model: v100}
physicalCluster:
  - {type: node, nodes: v1}
vcAssignment:
  - {vc: nlp, cells: [{type: pair, number: 1}]}
  - {vc: vision, cells: [{type: pair, number: 1}]}
`

// leased gives which GPUs of node v1 jobs have, as the journal has their leases.
func (s *site) leased() map[string][]int {
	s.t.Helper()
	var text string
	if err := s.db.QueryRow(s.ctx(), "select coalesce(json_object_agg(slurm_id, holdings -> 0 -> 'index'), '{}')::text from fairlease.leases where ended_at is null and started_at is not null").Scan(&text); err != nil {
		s.t.Fatal(err)
	}
	has := map[string][]int{}
	if err := json.Unmarshal([]byte(text), &has); err != nil {
		s.t.Fatalf("%v: %s", err, text)
	}
	return has
}

// given gives which GPUs of node v1 jobs have, as Slurm says.
func (s *site) given() map[string][]int {
	s.t.Helper()
	has := map[string][]int{}
	for id := range s.jobs {
		out, err := s.Exec(s.ctx(), "root", "scontrol", "-o", "-d", "show", "job", id)
		if err != nil {
			s.t.Fatal(err)
		}
		_, index, found := strings.Cut(out, "(IDX:")
		if index, _, _ = strings.Cut(index, ")"); !found {
			continue
		}
		for span := range strings.SplitSeq(index, ",") {
			first, last, several := strings.Cut(span, "-")
			from, err := strconv.Atoi(first)
			to := from
			if several && err == nil {
				to, err = strconv.Atoi(last)
			}
			if err != nil {
				s.t.Fatalf("job %s has GPUs %q: %v", id, index, err)
			}
			for ; from <= to; from++ {
				has[id] = append(has[id], from)
			}
		}
	}
	return has
}

// Slurm chooses the GPUs of a node for a job: leases follow it. A job on a node without a cell of
// its virtual cluster has its cell by number.
func TestCellsFollowSlurm(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC,
		Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 4}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		s := r.withCells(1, pairCells)
		var ids []string
		for i, user := range []string{"alice", "bob", "bob", "alice"} {
			ids = append(ids, s.works(user, 1, "guaranteed"))
			var leased, given map[string][]int
			r.until("leases are where Slurm put the jobs", 20*time.Second, func() bool {
				leased, given = s.leased(), s.given()
				return reflect.DeepEqual(leased, given)
			})
			t.Logf("jobs have GPUs %v; nlp has pairs (bound lost free lent) %s, vision %s", given, s.view("nlp", "pair"), s.view("vision", "pair"))
			// Slurm fills up the node from GPU 0, whose neighbour is in the same pair.
			if broken := s.ask("select count(*) from fairlease.events where kind = 'cells_broken'"); i == 1 && broken != "1" {
				t.Errorf("%s jobs were put into no cell of theirs, want 1", broken)
			}
		}
		for _, vc := range []string{"nlp", "vision"} {
			s.waitView(vc, "pair", "1 0 0 0")
		}
		s.untouched(ids...)
		s.goOn()
	})
}

// fence gives when the fence of a virtual cluster ends, and its nodes; "" = there is none.
func (s *site) fence(vc string) (end time.Time, nodes string) {
	s.t.Helper()
	out, err := s.Exec(s.ctx(), "root", "scontrol", "show", "reservation", "-o")
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		f := map[string]string{}
		for word := range strings.FieldsSeq(line) {
			key, value, _ := strings.Cut(word, "=")
			f[key] = value
		}
		if f["ReservationName"] == "fairlease_cell_"+vc {
			if end, err = time.ParseInLocation("2006-01-02T15:04:05", f["EndTime"], time.Local); err != nil {
				s.t.Fatal(err)
			}
			if end.After(time.Now()) {
				nodes = f["Nodes"]
			}
		}
	}
	return end, nodes
}

func (s *site) waitFence(vc, nodes string) {
	s.t.Helper()
	s.until(fmt.Sprintf("the fence of %s is around %q", vc, nodes), 20*time.Second, func() bool {
		_, is := s.fence(vc)
		return is == nodes
	})
}

// Jobs of a partition that is not managed get no GPU of a cell that is bound: neither while
// the virtual cluster leaves some of it free, nor when a sidecar has died, until the fence lapses.
func TestCellsAreFenced(t *testing.T) {
	onBoth(t, fourNodes, func(t *testing.T, r *rig) {
		s := r.withCells(1, nodeCells, 2, 2)
		stranger := func(node string) string {
			t.Helper()
			return r.submit("carol", "#!/bin/bash\nuntil [ -e go ]; do sleep 0.1; done\n", "-A", "nlp", "-p", "free", "-w", node, "--gres=gpu:1")
		}
		first := s.works("alice", 1, "guaranteed")
		s.waitFence("nlp", "v1")
		out := stranger("v1")
		in := stranger("v4")
		r.waitState(in, 20*time.Second, "RUNNING")
		second := s.works("alice", 2, "guaranteed")
		r.waitState(out, 0, "PENDING")
		gang := r.submit("alice", "#!/bin/bash\nuntil [ -e go ]; do sleep 0.1; done\n", "-A", "nlp", "-N1", "--gres=gpu:4")
		r.waitState(gang, 20*time.Second, "RUNNING")
		s.waitFence("nlp", "v[1-2]")
		s.untouched(first, second)

		begin, _ := s.fence("nlp")
		s.until("the fence is prolonged", time.Minute, func() bool { end, _ := s.fence("nlp"); return end.After(begin) })
		s.letGo(first)
		s.letGo(second)
		s.waitFence("nlp", "v2")
		r.waitState(out, 20*time.Second, "RUNNING")

		s.end(syscall.SIGKILL)
		out = stranger("v2")
		r.waitState(gang, 0, "RUNNING")
		s.until("the fence has lapsed", 2*time.Minute, func() bool { _, nodes := s.fence("nlp"); return nodes == "" })
		if is := s.restarts(gang); is != "RUNNING 0" {
			t.Errorf("the job in what was fenced is %s", is)
		}
		r.asks("root", "scancel "+gang)
		r.waitState(out, 30*time.Second, "RUNNING")

		s.end = s.serve(s.config)
		s.works("bob", 4, "guaranteed")
		s.until("vision has a fence", 20*time.Second, func() bool { _, nodes := s.fence("vision"); return nodes != "" })
		s.end(syscall.SIGKILL)
		if out, err := s.fairlease(s.config, "release"); err != nil {
			t.Fatalf("release: %v\n%s", err, out)
		}
		for _, vc := range []string{"nlp", "vision"} {
			if _, nodes := s.fence(vc); nodes != "" {
				t.Errorf("after release %s has a fence around %s", vc, nodes)
			}
		}
	})
}

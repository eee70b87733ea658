package e2e

import (
	"flag"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// long names the tests that take longest, in minutes.
var long = map[string]int{
	"TestSaturatedOneToOne": 9, "TestSaturatedThreeToOne": 9, "TestBreaker": 6,
	"TestSaversAndOthers": 5, "TestSlurmsOwnPreemptionSwings": 5, "TestPresets": 5, "TestCheckpointAndResume": 5,
	"TestFirstComerKeepsItsHalfOnly": 4, "TestPartsOfGPUs": 4, "TestSlices": 4, "TestDebtsAreRepaid": 4,
	"TestTinyJobsBesideLongOnes": 3, "TestJobsThatSaveNothing": 3, "TestSubAccountsOfACoordinator": 3, "TestProfileOnIdleGPUs": 3,
	"TestDivisionOfPairs": 3, "TestWhoRepaysKeepsItsFloor": 3, "TestSlurmPassesTheClusterSuite": 3, "TestUsersOfATenant": 3,
	"TestSlicesByWeight": 3, "TestTradingRaisesBoth": 3,
	"TestGangAmongSmallJobs": 2, "TestFloodsAtALimit": 2, "TestCellsAreFenced": 2, "TestDrills": 2, "TestPairs": 2, "TestSlicesOfThree": 2,
	"TestStopsPerHour": 2,
}

// clusters is the queue of all tests for a cluster.
var clusters queue

// queue limits how many clusters run at once to the value of go test -parallel. The longest tests go first: go test starts tests in any
// order, and could end with one of them alone.
type queue struct {
	mu      sync.Mutex
	free    int
	waiting []turn // the longest test first
}

type turn struct {
	minutes int
	begin   chan struct{}
}

// open takes over the limit from package testing, which would choose tests by itself.
func (q *queue) open() error {
	flag.Parse()
	limit := flag.Lookup("test.parallel").Value
	n, err := strconv.Atoi(limit.String())
	if err != nil {
		return err
	}
	q.free = max(n, 2) // one test needs two
	return limit.Set("1000")
}

// wait waits for a test's turn, which ends with the test.
func (q *queue) wait(t *testing.T) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	since := time.Now()
	<-q.join(long[name])
	t.Logf("waited %s for its turn", time.Since(since).Round(time.Second))
	t.Cleanup(q.leave)
}

// join gives a channel that is closed at the turn of a test of so many minutes.
func (q *queue) join(minutes int) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	mine := turn{minutes, make(chan struct{})}
	at := slices.IndexFunc(q.waiting, func(other turn) bool { return other.minutes < minutes })
	if at < 0 {
		at = len(q.waiting)
	}
	q.waiting = slices.Insert(q.waiting, at, mine)
	q.next()
	return mine.begin
}

// leave ends a turn.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free++
	q.next()
}

// next begins the turns of waiting tests.
func (q *queue) next() {
	for ; q.free > 0 && len(q.waiting) > 0; q.free-- {
		close(q.waiting[0].begin)
		q.waiting = q.waiting[1:]
	}
}

func TestLongestTestsGoFirst(t *testing.T) {
	q := queue{free: 1}
	var begun string
	turns := map[string]chan struct{}{}
	look := func() {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			select {
			case <-turns[name]:
				begun += name
				delete(turns, name)
			default:
			}
		}
	}
	for _, x := range []struct {
		name    string
		minutes int
	}{{"a", 0}, {"b", 0}, {"c", 0}, {"d", 9}, {"e", 5}} {
		turns[x.name] = q.join(x.minutes)
		look()
	}
	for range 4 {
		begun += " "
		q.leave()
		look()
	}
	if q.leave(); begun != "a d e b c" || q.free != 1 {
		t.Errorf("the turns were %s, %d are free", begun, q.free)
	}
}

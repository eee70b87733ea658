package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/klauspost/compress/zstd"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A snapshot log stores the rounds' snapshots and plans as blobs. Now and then a round is a keyframe,
// which is self-contained; the others are differences to the previous round.
//
// Most of a round is jobs, their records, leases and statuses: these are sheets, in which former jobs are rows
// among the others. The rest is JSON. A snapshot is told from the plan before it, and a plan from its snapshot. A wrong prediction costs only
// space.
type snapshotLog struct {
	key   int64 // the keyframe's round; 0 = none yet
	day   date  // the keyframe's: its frames are in one partition
	link  int   // of the newest frame
	round int64 // of the newest frame
	words int   // number of words in frames
	last  scene
	told  [7]habits // of the differences in a frame
}

// frame is one encoded round.
type frame struct {
	round, keyframe int64
	link            int // number of frames from the keyframe, inclusive
	at              cluster.Instant
	day             date
	snapshot, plan  blob
	scene           scene
}

// blob is a compressed snapshot or plan, and its uncompressed length.
type blob struct {
	packed []byte
	bytes  int64
}

// scene is the state that frames are encoded from: a round as sheets, and the JSON of the rest.
type scene struct {
	words                 *words
	jobs, records, leases *sheet
	usuals, statuses      *sheet
	snapshot, plan        []byte
	carried               []byte // JSON that one round passes to the next; nil if only snapshot and plan have it
}

// carried is the part of a plan's memory that the next snapshot repeats, without the sheets.
type carried struct {
	Ledger cluster.Ledger  `json:"ledger"`
	Claims []cluster.Claim `json:"claims"`
	Habits []cluster.Habit `json:"habits"`
	// Versions before these had none of them.
	Completions []cluster.Completion `json:"completions,omitempty"`
	Usages      []cluster.Usage      `json:"usages,omitempty"`
	Causes      []cluster.Cause      `json:"causes,omitempty"`
	Noise       []cluster.Noise      `json:"noise,omitempty"`
	Stops       []cluster.Stopped    `json:"stops,omitempty"`
	Shadow      cluster.Shadow       `json:"shadow,omitzero"`
	Breaker     cluster.Breaker      `json:"breaker,omitzero"`
	NodeSpeeds  cluster.NodeSpeeds   `json:"node_speeds,omitzero"`
}

// keyframeEvery is the maximum number of frames from one keyframe to the next.
const keyframeEvery = 360

var (
	jobShape    = shapeOf(reflect.TypeFor[cluster.Case](), "record")
	recordShape = shapeOf(reflect.TypeFor[cluster.Record]())
	leaseShape  = shapeOf(reflect.TypeFor[cluster.Lease]())
)

// newScene is an empty scene with columns.
func newScene(columns [5][]column) scene {
	empty := func(i int) *sheet { return &sheet{columns: columns[i]} }
	return scene{words: newWords(), jobs: empty(0), records: empty(1), leases: empty(2), usuals: empty(3), statuses: empty(4)}
}

func ourColumns() [5][]column {
	return [5][]column{jobShape.columns, recordShape.columns, leaseShape.columns, usualShape.columns, besideShape.columns}
}

// A frame's snapshot begins with a number: keyOfAll in a keyframe, which lists its columns,
// frameOfAll otherwise. carried is encoded relative to the plan before, and that of the plan to
// its snapshot.
//
//	snapshot  keyOfAll|frameOfAll words jobs records leases carried rest
//	plan      from at words records leases usuals statuses carried rest digest
const (
	keyOfAll = 2 + iota // frames of builds before v0.1.0 begin with 0 or 1
	frameOfAll
)

// encode encodes a round.
func (f *snapshotLog) encode(snap cluster.Snapshot, plan cluster.Plan) (frame, error) {
	encoded := frame{round: plan.Round, keyframe: f.key, link: f.link + 1, at: plan.At, day: dateOf(plan.At)}
	was, follows := f.last, f.round == snap.Round-1
	var told []byte
	if f.key == 0 || encoded.link == keyframeEvery || encoded.day != f.day {
		encoded.keyframe, encoded.link = plan.Round, 0
		was = newScene(ourColumns())
		told = appendColumns([]byte{keyOfAll}, ourColumns())
	} else {
		told = []byte{frameOfAll}
		was.words.forget(f.words) // of a frame that was not written
	}
	w := was.words
	defer w.leave()
	failed := func(what string, err error) (frame, error) {
		return frame{}, fmt.Errorf("encoding the %s: %w", what, err)
	}
	known := len(w.texts)
	rows := withFormer(len(snap.Cases), func(i int) *cluster.Record { return &snap.Cases[i].Record }, snap.Former)
	jobs, err := was.jobs.of(jobShape, w, jobList(rows, casesOf(&snap, rows), follows))
	if err != nil {
		return failed("jobs", err)
	}
	records, err := was.records.of(recordShape, w, recordList(rows))
	if err != nil {
		return failed("records", err)
	}
	leases, err := was.leases.of(leaseShape, w, leaseList(snap.Leases))
	if err != nil {
		return failed("leases", err)
	}
	if encoded.scene.snapshot, encoded.scene.plan, err = rest(snap, plan); err != nil {
		return failed("rest", err)
	}
	taken, err := json.Marshal(carried{snap.Ledger, snap.Claims, snap.Habits, snap.Completions, snap.Usages, snap.Causes, snap.Noise, snap.Stops, snap.Shadow, snap.Breaker, snap.NodeSpeeds})
	if err != nil {
		return failed("ledger", err)
	}
	if encoded.scene.carried, err = json.Marshal(carried{plan.State.Ledger, plan.State.Claims, plan.State.Habits, plan.State.Completions, plan.State.Usages, plan.State.Causes, plan.State.Noise, plan.State.Stops, plan.State.Shadow, plan.State.Breaker, plan.State.NodeSpeeds}); err != nil {
		return failed("ledger", err)
	}
	told = appendWords(told, w, known)
	told = jobs.append(told, &plain, &f.told[0])
	told = records.append(told, &plain, &f.told[1])
	told = leases.append(told, &plain, &f.told[2])
	told = appendChange(told, was.carried, taken)
	told = appendChange(told, was.snapshot, encoded.scene.snapshot)
	encoded.snapshot = pack(told)

	known = len(w.texts)
	m := &plan.State
	charged, err := records.now.of(recordShape, w, recordList(withFormer(len(m.Records), func(i int) *cluster.Record { return &m.Records[i] }, m.Former)))
	if err != nil {
		return failed("records", err)
	}
	granted, err := leases.now.of(leaseShape, w, leaseList(m.Leases))
	if err != nil {
		return failed("leases", err)
	}
	reasons := reasonsOf(plan.Statuses, was.usuals, jobs.now, charged.now, w)
	usuals, err := was.usuals.of(usualShape, w, reasons.usualList())
	if err != nil {
		return failed("statuses", err)
	}
	statuses, err := was.statuses.of(besideShape, w, reasons.list())
	if err != nil {
		return failed("statuses", err)
	}
	s := &encoded.scene
	s.words, s.jobs, s.records, s.leases, s.usuals, s.statuses = w, jobs.now, charged.now, granted.now, usuals.now, statuses.now
	told = appendNumbers(told[:0], uint64(snap.Ledger.At), uint64(plan.At))
	told = appendWords(told, w, known)
	told = charged.append(told, accruing(snap.Ledger.At, plan.At), &f.told[3])
	told = granted.append(told, &plain, &f.told[4])
	told = usuals.append(told, &repeating, &f.told[5])
	told = statuses.append(told, judging(s.jobs, s.records, plan.At), &f.told[6])
	told = appendChange(told, taken, s.carried)
	told = appendChange(told, was.plan, s.plan)
	told = appendNumbers(told, s.digest())
	encoded.plan = pack(told)
	return encoded, nil
}

// jobList is the cases of records and former jobs. If the log has the last round, those that are known to be as they were there are not read.
func jobList(records []*cluster.Record, cases []*cluster.Case, follows bool) *structs {
	return &structs{len(cases), func(i int) int64 { return int64(records[i].Key) },
		func(i int, _ *row) bool {
			return follows && cases[i].Was > 0
		},
		func(all []int) []unsafe.Pointer {
			at := make([]unsafe.Pointer, len(all))
			for k, i := range all {
				at[k] = unsafe.Pointer(cases[i])
			}
			return at
		}, false}
}

// recordList is records. One that is the same, bit for bit, is as it was: the lists in it are replaced, never changed.
func recordList(records []*cluster.Record) *structs {
	return &structs{len(records), func(i int) int64 { return int64(records[i].Key) },
		func(i int, was *row) bool {
			return was.like != nil && sameBits((*cluster.Record)(was.like), records[i])
		},
		func(all []int) []unsafe.Pointer {
			return copies(all, func(i int) cluster.Record { return *records[i] })
		}, true}
}

// pointersTo gives some structs of a list.
func pointersTo[T any](list []T, some []int) []unsafe.Pointer {
	out := make([]unsafe.Pointer, len(some))
	for k, i := range some {
		out[k] = unsafe.Pointer(&list[i])
	}
	return out
}

// sameBits tells whether two structs are the same in memory.
func sameBits[T any](a, b *T) bool {
	return bytes.Equal(unsafe.Slice((*byte)(unsafe.Pointer(a)), unsafe.Sizeof(*a)), unsafe.Slice((*byte)(unsafe.Pointer(b)), unsafe.Sizeof(*b)))
}

// leaseList is leases: they are few.
func leaseList(leases []cluster.Lease) *structs {
	return &structs{len(leases), func(i int) int64 { return int64(leases[i].Job) }, nil, func(all []int) []unsafe.Pointer { return pointersTo(leases, all) }, false}
}

// keep records that the frame was written.
func (f *snapshotLog) keep(encoded frame) {
	f.key, f.day, f.link, f.round, f.words, f.last = encoded.keyframe, encoded.day, encoded.link, encoded.round, len(encoded.scene.words.texts), encoded.scene
}

// rest gives the JSON of what is neither in sheets nor carried.
func rest(snap cluster.Snapshot, plan cluster.Plan) (snapshot, whole []byte, err error) {
	snap.Cases, snap.Former, snap.Leases = snap.Cases[:0:0], nil, snap.Leases[:0:0]
	plan.State.Records, plan.State.Former, plan.State.Leases, plan.Statuses = plan.State.Records[:0:0], nil, plan.State.Leases[:0:0], plan.Statuses[:0:0]
	snap.Ledger, snap.Claims, snap.Habits, snap.Completions, snap.Usages, snap.Causes, snap.Noise = cluster.Ledger{}, nil, nil, nil, nil, nil, nil
	snap.Stops, snap.Shadow, snap.Breaker, snap.NodeSpeeds = nil, cluster.Shadow{}, cluster.Breaker{}, cluster.NodeSpeeds{}
	m := &plan.State
	m.Ledger, m.Claims, m.Habits, m.Completions, m.Usages, m.Causes, m.Noise = cluster.Ledger{}, nil, nil, nil, nil, nil, nil
	m.Stops, m.Shadow, m.Breaker, m.NodeSpeeds = nil, cluster.Shadow{}, cluster.Breaker{}, cluster.NodeSpeeds{}
	if snapshot, err = json.Marshal(snap); err != nil {
		return nil, nil, err
	}
	whole, err = json.Marshal(plan)
	return snapshot, whole, err
}

// plain predicts nothing: rows are matched by owner.
var plain = foresight{tell: byOwner}

func byOwner(b *block) foretold {
	return foretold{groups: [][]int64{b.column(textKind, "tenant"), b.column(jsonKind, "held")}}
}

// accruing predicts what jobs are due whose records are written anew: those of a tenant that were due at one rate.
func accruing(from, at cluster.Instant) *foresight {
	group := func(s *sheet) func(*row) int64 {
		tenant, rate := s.cell(textKind, "tenant"), s.cell(numberKind, "due_rate")
		return func(r *row) int64 { return tenant(r)<<40 ^ rate(r) }
	}
	return &foresight{group, func(b *block) foretold {
		told := byOwner(b)
		due, carry, rates, since := b.column(numberKind, "due"), b.column(numberKind, "due_carry"), b.column(numberKind, "due_rate"), b.column(numberKind, "due_since")
		faster, extra := b.column(numberKind, "extra.faster"), b.column(numberKind, "extra.due")
		dues, carries, moments, extras := make([]int64, len(due)), make([]int64, len(due)), make([]int64, len(due)), make([]int64, len(due))
		for i := range due {
			r := cluster.Record{Due: cluster.GPUTime(due[i]), DueCarry: max(carry[i], 0), DueRate: cluster.MicroGPU(rates[i]), DueSince: cluster.Instant(since[i])}
			if since[i] == 0 {
				r.DueSince = from
			}
			now, left := cluster.DueBy(&r, at)
			work := cluster.Extra{Faster: faster[i]}
			dues[i], carries[i], moments[i], extras[i] = int64(now), left, int64(at), extra[i]+int64(work.Of(now-r.Due))
		}
		told.formulas = map[string][]int64{"due": dues, "due_carry": carries, "due_since": moments, "extra.due": extras}
		return told
	}}
}

// digest is a checksum of the whole scene.
func (s *scene) digest() (sum uint64) {
	for _, part := range []uint64{s.jobs.digest(), s.records.digest(), s.leases.digest(), s.usuals.digest(), s.statuses.digest()} {
		sum = (sum ^ part) * 0x100000001b3
	}
	for _, text := range [][]byte{s.snapshot, s.plan, s.carried} {
		for _, b := range text {
			sum = (sum ^ uint64(b)) * 0x100000001b3
		}
	}
	return sum
}

// decoder decodes the frames of a snapshot log from a keyframe on.
type decoder struct {
	last            scene
	snapshotRecords *sheet // of the newest frame
	snapshotLeases  *sheet
	snapshotCarried []byte
	sum             uint64
	begun           bool
}

var (
	errFrame = errors.New("the frame is broken, or frames before it are missing")
	errEarly = errors.New("a build from before v0.1.0 wrote this round in another format: install that build again, or drop the schema and begin with an empty journal")
)

// next decodes the next frame.
func (p *decoder) next(snapshot, plan blob) error {
	told, err := snapshot.unpack()
	if err != nil {
		return fmt.Errorf("unpacking the snapshot: %w", err)
	}
	r := &reader{left: told}
	how := r.number()
	if how < keyOfAll && !r.broken {
		return errEarly
	}
	if how == keyOfAll {
		p.last, p.begun = newScene(r.columns()), true
	}
	if !p.begun || r.broken || how > frameOfAll {
		return errFrame
	}
	s := &p.last
	r.words(s.words)
	s.jobs = r.sheet(s.jobs, &plain)
	s.records = r.sheet(s.records, &plain)
	s.leases = r.sheet(s.leases, &plain)
	p.snapshotRecords, p.snapshotLeases = s.records, s.leases
	p.snapshotCarried = r.text(s.carried)
	if s.snapshot = r.text(s.snapshot); r.broken {
		return fmt.Errorf("reading the snapshot: %w", errFrame)
	}
	if told, err = plan.unpack(); err != nil {
		return fmt.Errorf("unpacking the plan: %w", err)
	}
	r = &reader{left: told}
	from, at := cluster.Instant(r.number()), cluster.Instant(r.number())
	r.words(s.words)
	s.records = r.sheet(s.records, accruing(from, at))
	s.leases = r.sheet(s.leases, &plain)
	s.usuals = r.sheet(s.usuals, &repeating)
	s.statuses = r.sheet(s.statuses, judging(s.jobs, s.records, at))
	s.carried = r.text(p.snapshotCarried)
	s.plan = r.text(s.plan)
	if p.sum = r.number(); r.broken || len(r.left) > 0 {
		return fmt.Errorf("reading the plan: %w", errFrame)
	}
	return nil
}

// show gives the newest frame's snapshot and plan.
func (p *decoder) show() (snap cluster.Snapshot, plan cluster.Plan, err error) {
	s := &p.last
	if !p.begun || s.digest() != p.sum {
		return snap, plan, errFrame
	}
	if err := json.Unmarshal(s.snapshot, &snap); err != nil {
		return snap, plan, fmt.Errorf("reading the snapshot's JSON: %w", err)
	}
	if err := json.Unmarshal(s.plan, &plan); err != nil {
		return snap, plan, fmt.Errorf("reading the plan's JSON: %w", err)
	}
	if s.carried != nil {
		var before, after carried
		if err := errors.Join(json.Unmarshal(p.snapshotCarried, &before), json.Unmarshal(s.carried, &after)); err != nil {
			return snap, plan, fmt.Errorf("reading the ledger's JSON: %w", err)
		}
		snap.Ledger, snap.Claims, snap.Habits, snap.Completions, snap.Usages, snap.Causes, snap.Noise = before.Ledger, before.Claims, before.Habits, before.Completions, before.Usages, before.Causes, before.Noise
		snap.Stops, snap.Shadow, snap.Breaker, snap.NodeSpeeds = before.Stops, before.Shadow, before.Breaker, before.NodeSpeeds
		m := &plan.State
		m.Ledger, m.Claims, m.Habits, m.Completions, m.Usages, m.Causes, m.Noise = after.Ledger, after.Claims, after.Habits, after.Completions, after.Usages, after.Causes, after.Noise
		m.Stops, m.Shadow, m.Breaker, m.NodeSpeeds = after.Stops, after.Shadow, after.Breaker, after.NodeSpeeds
	}
	w := s.words
	cases, m := listOfRows(&snap.Cases, s.jobs), &plan.State
	if len(p.snapshotRecords.rows) != len(s.jobs.rows) {
		return snap, plan, errFrame
	}
	err = errors.Join(
		s.jobs.tell(jobShape, w, cases),
		p.snapshotRecords.tell(recordShape, w, func(i int) reflect.Value { return reflect.ValueOf(&snap.Cases[i].Record).Elem() }),
		p.snapshotLeases.tell(leaseShape, w, listOfRows(&snap.Leases, p.snapshotLeases)),
		s.records.tell(recordShape, w, listOfRows(&m.Records, s.records)),
		s.leases.tell(leaseShape, w, listOfRows(&m.Leases, s.leases)))
	statuses, wrong := statusesOf(s)
	if err = errors.Join(err, wrong); statuses != nil {
		plan.Statuses = statuses
	}
	partFormer(&snap, &plan)
	return snap, plan, err
}

// listOfRows allocates a sheet's rows, and gives each.
func listOfRows[T any](list *[]T, s *sheet) func(int) reflect.Value {
	if n := len(s.rows); n > 0 {
		*list = make([]T, n)
	}
	return func(i int) reflect.Value { return reflect.ValueOf(&(*list)[i]).Elem() }
}

func appendColumns(out []byte, columns [5][]column) []byte {
	for _, some := range columns {
		out = appendNumbers(out, uint64(len(some)))
		for _, c := range some {
			out = append(appendText(out, c.name), c.kind)
		}
	}
	return out
}

// mostColumns bounds the columns of a broken blob.
const mostColumns = 1000

func (r *reader) columns() (all [5][]column) {
	for i := range all {
		for range min(r.number(), mostColumns) {
			name := string(r.bytes(r.number()))
			kind := r.bytes(1)
			if r.broken {
				return all
			}
			all[i] = append(all[i], column{kind[0], name})
		}
	}
	return all
}

// appendWords encodes the words from number known on.
func appendWords(out []byte, w *words, known int) []byte {
	out = appendNumbers(out, uint64(len(w.texts)-known))
	for _, text := range w.texts[known:] {
		out = appendText(out, text)
	}
	return out
}

func (r *reader) words(w *words) {
	for n := r.number(); n > 0 && !r.broken; n-- {
		w.number(string(r.bytes(r.number())))
	}
}

func appendText(out []byte, text string) []byte {
	return append(appendNumbers(out, uint64(len(text))), text...)
}

var (
	encoder = zip(zstd.SpeedBetterCompression)
	smaller = zip(zstd.SpeedBestCompression)
)

func zip(level zstd.EncoderLevel) *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(level))
	if err != nil {
		panic(err) // its options are wrong
	}
	return encoder
}

// pack compresses the text. The better encoder saves one byte in fourteen but takes four times as
// long: too long for a keyframe of many jobs.
func pack(told []byte) blob {
	with := smaller
	if len(told) > 1<<18 {
		with = encoder
	}
	return blob{with.EncodeAll(told, nil), int64(len(told))}
}

// unpack decompresses a blob. The length is known, so that a broken blob cannot demand more
// memory.
func (b blob) unpack() ([]byte, error) {
	told, err := b.unzip(b.bytes)
	if err == nil && int64(len(told)) != b.bytes {
		err = fmt.Errorf("it has %d bytes, not %d", len(told), b.bytes)
	}
	return told, err
}

// unzip gives at most slightly more than most bytes.
func (b blob) unzip(most int64) ([]byte, error) {
	const more = 1024
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(most, 0)+more)))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	return decoder.DecodeAll(b.packed, nil)
}

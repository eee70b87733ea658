package store

import (
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A film is the rounds' snapshots and plans as blobs. Now and then a round is a
// keyframe, compressed by itself; the others are compressed differences to it.
type film struct {
	key   int64 // the keyframe's round; 0 = none yet
	whole int   // bytes of its blobs
	count int   // frames since then, with it
	size  int   // bytes of their blobs
	worn  bool  // the next is a keyframe

	snapshot, plan *original
}

// frame is one round on film.
type frame struct {
	round, keyframe int64
	texts           texts
	snapshot, plan  blob
}

// texts are a round's snapshot and plan as JSON.
type texts struct{ snapshot, plan []byte }

// blob is a text or a difference, compressed, and the text's length in bytes.
type blob struct {
	packed []byte
	bytes  int64
}

// keyframeEvery bounds how many frames need one keyframe.
const keyframeEvery = 100

// shoot compresses a round.
func (f *film) shoot(snap cluster.Snapshot, plan cluster.Plan) (frame, error) {
	shot := frame{round: plan.Round, keyframe: f.key}
	var err error
	if shot.texts.snapshot, err = json.Marshal(snap); err != nil {
		return frame{}, fmt.Errorf("writing the snapshot as JSON: %w", err)
	}
	if shot.texts.plan, err = json.Marshal(plan); err != nil {
		return frame{}, fmt.Errorf("writing the plan as JSON: %w", err)
	}
	if f.key == 0 || f.worn {
		shot.keyframe = plan.Round
		shot.snapshot, shot.plan = pack(shot.texts.snapshot, nil), pack(shot.texts.plan, nil)
		return shot, nil
	}
	shot.snapshot, shot.plan = pack(shot.texts.snapshot, f.snapshot), pack(shot.texts.plan, f.plan)
	return shot, nil
}

// keep remembers that the frame was written. Differences grow with the time since
// the keyframe; once one is above the average, a new keyframe costs less. So it
// does when much has changed at once.
func (f *film) keep(shot frame) {
	size := len(shot.snapshot.packed) + len(shot.plan.packed)
	if shot.keyframe != shot.round {
		f.count++
		f.size += size
		f.worn = f.count >= keyframeEvery || size*f.count > f.size || 2*size > f.whole
		return
	}
	*f = film{
		key: shot.round, whole: size, count: 1, size: size,
		snapshot: newOriginal(shot.texts.snapshot), plan: newOriginal(shot.texts.plan),
	}
}

var encoder = must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)))

// pack compresses a text, or its difference to key if there is one.
func pack(text []byte, key *original) blob {
	told := text
	if key != nil {
		told = key.delta(text)
	}
	return blob{encoder.EncodeAll(told, nil), int64(len(text))}
}

// develop unpacks a round's blobs. key holds its keyframe's texts, none for a
// keyframe.
func develop(snapshot, plan blob, key texts) (texts, error) {
	var out texts
	var err error
	if out.snapshot, err = snapshot.unpack(key.snapshot); err != nil {
		return texts{}, fmt.Errorf("unpacking the snapshot: %w", err)
	}
	if out.plan, err = plan.unpack(key.plan); err != nil {
		return texts{}, fmt.Errorf("unpacking the plan: %w", err)
	}
	return out, nil
}

// unpack gives the text; key is the text that it is a difference to, or nil.
// The length is known, so that a broken blob asks for no more memory than it may.
func (b blob) unpack(key []byte) ([]byte, error) {
	const longer = 1024 // a difference may be so much longer than twice its text
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(2*max(b.bytes, 0)+longer)))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	told, err := decoder.DecodeAll(b.packed, nil)
	if err != nil {
		return nil, err
	}
	if key != nil {
		return newOriginal(key).apply(told, b.bytes)
	}
	if int64(len(told)) != b.bytes {
		return nil, fmt.Errorf("it has %d bytes, not %d", len(told), b.bytes)
	}
	return told, nil
}

func must(encoder *zstd.Encoder, err error) *zstd.Encoder {
	if err != nil {
		panic(err) // its options are wrong
	}
	return encoder
}

// read gives the values that the texts tell.
func (t texts) read() (snap cluster.Snapshot, plan cluster.Plan, err error) {
	if err := json.Unmarshal(t.snapshot, &snap); err != nil {
		return snap, plan, fmt.Errorf("reading the snapshot's JSON: %w", err)
	}
	if err := json.Unmarshal(t.plan, &plan); err != nil {
		return snap, plan, fmt.Errorf("reading the plan's JSON: %w", err)
	}
	return snap, plan, nil
}

package export

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
)

// Fault is a defect of a file.
type Fault struct {
	Line int    // from 1; 0 for the file as a whole
	What string // the defect and its place
}

// String returns the defect with its line.
func (f Fault) String() string {
	if f.Line == 0 {
		return f.What
	}
	return fmt.Sprintf("line %d: %s", f.Line, f.What)
}

// Totals are the counts of a file.
type Totals struct {
	Sessions int
	Lanes    int
	Messages int
	Answers  int
	Lines    int
	Bytes    int64 // of messages and answers, counting repeated ones each time
	Faults   int
	SHA256   string // of every byte before the last line
}

// Verify reads a file to its end and reports every fault: in each message's bytes, every chain and the
// counts, and missing, duplicate, reordered, changed or foreign lines. It returns an error only if reading
// fails. It keeps one line in memory, and 32 bytes for each message of a session.
func Verify(file io.Reader, report func(Fault)) (Totals, error) {
	v := &verifier{report: report, digest: sha256.New()}
	reader := bufio.NewReaderSize(file, 64<<10)
	for {
		line, whole, err := readLine(reader)
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, errLongLine) {
			v.totals.Lines++
			v.faultf("is longer than any line of an export; nothing after it was read")
			return v.totals, nil
		}
		if err != nil {
			return v.totals, fmt.Errorf("read export: %w", err)
		}
		v.totals.Lines++
		v.line(line, whole)
	}
	v.finish()
	return v.totals, nil
}

var errLongLine = errors.New("line is too long")

// readLine returns the next line without its line feed, and whether it had one.
func readLine(reader *bufio.Reader) (line []byte, whole bool, err error) {
	for {
		part, err := reader.ReadSlice('\n')
		if len(line)+len(part) > MaxLine {
			return nil, false, errLongLine
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], true, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, false, nil
		default:
			return nil, false, err
		}
	}
}

// verifier is a file during its verification.
type verifier struct {
	report func(Fault)
	totals Totals
	digest hash.Hash

	open   *openSection // nil outside a session
	closed bool         // the file's last line has been read
}

// openSection is a session during its verification.
type openSection struct {
	manifest manifestLine
	digest   string // of the manifest's line
	lanes    map[uuid.UUID]*chain
	answers  *chain
	seen     map[conversation.Hash]struct{}
	messages int
	bytes    int64
	damaged  int
}

// chain is the part read so far of a lane, or of a session's answers.
type chain struct {
	name  string
	link  conversation.Hash
	next  int // lowest index that may follow
	count int
}

func newChain(name string) *chain { return &chain{name: name, link: archive.NewHead().Link} }

func (v *verifier) faultf(format string, arguments ...any) {
	v.totals.Faults++
	v.report(Fault{Line: v.totals.Lines, What: fmt.Sprintf(format, arguments...)})
}

func (v *verifier) line(line []byte, whole bool) {
	sum := hex.EncodeToString(v.digest.Sum(nil))
	v.digest.Write(line)
	if whole {
		v.digest.Write([]byte{'\n'})
	}
	if !whole {
		v.faultf("is cut off")
		return
	}
	if v.closed {
		v.faultf("stands after the file's last line")
		return
	}
	var kind kindLine
	if err := json.Unmarshal(line, &kind); err != nil {
		v.faultf("is no JSON object: %v", err)
		return
	}
	switch kind.Type {
	case typeManifest:
		read(v, line, v.manifest)
	case typeMessage:
		read(v, line, v.message)
	case typeAnswer:
		read(v, line, v.answer)
	case typeProjection:
		read(v, line, func(line projectionLine) { v.ofLane("a projection", line.Lane) })
	case typePin:
		read(v, line, func(line pinLine) { v.ofLane("a pin", line.Lane) })
	case typeOrder:
		read(v, line, func(line orderLine) { v.ofLane("an order", line.Lane) })
	case typeDamage:
		read(v, line, v.damage)
	case typeEnd:
		read(v, line, v.end)
	case typeFile:
		v.totals.SHA256 = sum
		read(v, line, v.file)
	default:
		v.faultf("has the type %q, which no export has", kind.Type)
	}
	if kind.Type == typeManifest && v.open != nil {
		sum := sha256.Sum256(line)
		v.open.digest = hex.EncodeToString(sum[:])
	}
}

// read decodes a line strictly: an unknown member is a fault.
func read[L any](v *verifier, line []byte, check func(L)) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	var decoded L
	if err := decoder.Decode(&decoded); err != nil {
		v.faultf("cannot be read: %v", err)
		return
	}
	if decoder.More() {
		v.faultf("goes on after its JSON object")
		return
	}
	check(decoded)
}

func (v *verifier) manifest(line manifestLine) {
	if v.open != nil {
		v.faultf("opens a session before the last one, %s, has ended", v.open.manifest.Session.ID)
	}
	if line.Version != Version {
		v.faultf("has the format %d; this program reads %d", line.Version, Version)
	}
	if line.Section != v.totals.Sessions {
		v.faultf("is section %d, where section %d belongs", line.Section, v.totals.Sessions)
	}
	v.totals.Sessions++
	v.open = &openSection{
		manifest: line, lanes: make(map[uuid.UUID]*chain), answers: newChain("answer"), seen: make(map[conversation.Hash]struct{}),
	}
	for _, lane := range line.Lanes {
		if v.open.lanes[lane.ID] != nil {
			v.faultf("names lane %s twice", lane.ID)
		}
		v.open.lanes[lane.ID] = newChain("message of lane " + lane.ID.String() + ",")
	}
	v.totals.Lanes += len(line.Lanes)
}

// inSection reports whether a session is open, and a fault otherwise.
func (v *verifier) inSection(what string) bool {
	if v.open == nil {
		v.faultf("%s stands outside of any session", what)
	}
	return v.open != nil
}

func (v *verifier) message(line messageLine) {
	if !v.inSection("a message") {
		return
	}
	v.totals.Messages++
	v.open.messages++
	lane := v.open.lanes[line.Lane]
	if lane == nil {
		v.faultf("message %d belongs to lane %s, which the manifest does not name", line.Index, line.Lane)
		return
	}
	v.link(lane, line.Index, line.content)
}

func (v *verifier) answer(line answerLine) {
	if !v.inSection("an answer") {
		return
	}
	v.totals.Answers++
	v.link(v.open.answers, line.Index, line.content)
}

// link checks a message's bytes and its place in a chain.
func (v *verifier) link(chain *chain, index int, content content) {
	place := fmt.Sprintf("%s index %d", chain.name, index)
	v.totals.Bytes += int64(content.Size)
	v.open.bytes += int64(content.Size)
	chain.count++
	digest, ok := hashOf(content.SHA256)
	link, linked := hashOf(content.Link)
	if !ok || !linked {
		v.faultf("%s: its hash or link is invalid", place)
		return
	}
	v.bytes(place, digest, content)
	if index < chain.next {
		v.faultf("%s: comes twice or in another order, index %d was the lowest to come", place, chain.next)
	}
	if archive.Link(chain.link, index, digest) != link {
		v.faultf("%s: its link does not follow from the one before: a message before it is missing, moved or changed, or this one is", place)
	}
	// The following links are checked against this line, so that one fault is reported once.
	chain.link, chain.next = link, max(chain.next, index+1)
}

// bytes checks the bytes of a message.
func (v *verifier) bytes(place string, digest conversation.Hash, content content) {
	if content.Damage != "" {
		v.open.damaged++
		v.faultf("%s: was damaged in the archive when it was exported: %s", place, content.Damage)
		return
	}
	var raw []byte
	switch {
	case content.Text != nil && content.Base64 != nil:
		v.faultf("%s: has its bytes twice", place)
		return
	case content.Text != nil:
		raw = []byte(*content.Text)
	case content.Base64 != nil:
		var err error
		if raw, err = base64.StdEncoding.DecodeString(*content.Base64); err != nil {
			v.faultf("%s: its base64 cannot be read", place)
			return
		}
	default:
		if _, known := v.open.seen[digest]; !known {
			v.faultf("%s: has no bytes, and no message before it is the same", place)
		}
		return
	}
	if sha256.Sum256(raw) != digest {
		v.faultf("%s: its bytes do not have its SHA-256 %s", place, content.SHA256)
		return
	}
	if len(raw) != content.Size {
		v.faultf("%s: has %d bytes and says %d", place, len(raw), content.Size)
	}
	v.open.seen[digest] = struct{}{}
}

func hashOf(text string) (conversation.Hash, bool) {
	decoded, err := hex.DecodeString(text)
	if err != nil || len(decoded) != len(conversation.Hash{}) {
		return conversation.Hash{}, false
	}
	return conversation.Hash(decoded), true
}

// ofLane checks that a line is in a session that has its lane.
func (v *verifier) ofLane(what string, lane uuid.UUID) {
	if v.inSection(what) && v.open.lanes[lane] == nil {
		v.faultf("%s belongs to lane %s, which the manifest does not name", what, lane)
	}
}

func (v *verifier) damage(line damageLine) {
	if v.inSection("a note of damage") {
		v.open.damaged++
		v.faultf("the archive was damaged when it was exported: %s", line.Damage)
	}
}

func (v *verifier) end(line endLine) {
	if !v.inSection("the end of a session") {
		return
	}
	open := v.open
	v.open = nil
	if line.Section != open.manifest.Section {
		v.faultf("ends section %d, and section %d is open", line.Section, open.manifest.Section)
	}
	if line.Manifest != open.digest {
		v.faultf("the manifest of session %s is not the one that was written", open.manifest.Session.ID)
	}
	if line.Messages != open.messages || line.Bytes != open.bytes || line.Damaged != open.damaged {
		v.faultf("session %s has %d messages, %d bytes and %d damaged; its end says %d, %d and %d",
			open.manifest.Session.ID, open.messages, open.bytes, open.damaged, line.Messages, line.Bytes, line.Damaged)
	}
	ends := map[uuid.UUID]chainEnd{}
	for _, end := range line.Lanes {
		ends[end.Lane] = end
	}
	for _, lane := range open.manifest.Lanes {
		v.chainEnd("lane "+lane.ID.String(), open.lanes[lane.ID], ends[lane.ID])
		if lane.Messages != open.lanes[lane.ID].count {
			v.faultf("lane %s has %d messages; the manifest says %d", lane.ID, open.lanes[lane.ID].count, lane.Messages)
		}
	}
	if len(line.Lanes) != len(open.manifest.Lanes) {
		v.faultf("session %s ends with %d lanes; its manifest names %d", open.manifest.Session.ID, len(line.Lanes), len(open.manifest.Lanes))
	}
	v.chainEnd("the chain of answers", open.answers, line.Answers)
}

// chainEnd checks a chain at the end of its session.
func (v *verifier) chainEnd(name string, chain *chain, end chainEnd) {
	if end.Messages != chain.count {
		v.faultf("%s has %d entries; its end says %d", name, chain.count, end.Messages)
	}
	if end.Link != hex.EncodeToString(chain.link[:]) {
		v.faultf("%s does not end with the link that was written", name)
	}
}

func (v *verifier) file(line fileLine) {
	v.closed = true
	if v.open != nil {
		v.faultf("the file ends before session %s does", v.open.manifest.Session.ID)
	}
	if line.Sections != v.totals.Sessions {
		v.faultf("the file has %d sessions; its end says %d", v.totals.Sessions, line.Sections)
	}
	if line.Lines != v.totals.Lines-1 {
		v.faultf("the file has %d lines before this one; its end says %d", v.totals.Lines-1, line.Lines)
	}
	if line.SHA256 != v.totals.SHA256 {
		v.faultf("the bytes before this line are not those that were written: their SHA-256 is %s", v.totals.SHA256)
	}
}

// finish reports the missing end of a file.
func (v *verifier) finish() {
	if v.closed {
		return
	}
	v.totals.Faults++
	what := "the file is cut off: its last line is missing"
	if v.totals.Lines == 0 {
		what = "the file is empty"
	}
	v.report(Fault{What: what})
}

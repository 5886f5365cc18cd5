package export_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/export"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// memory is an archive in memory, with what may be wrong with one.
type memory struct {
	archive.Reader

	lanes   map[uuid.UUID][]archive.Entry
	answers []archive.Answer
	bytes   map[conversation.Hash][]byte
	heads   map[uuid.UUID]archive.Head
	broken  map[conversation.Hash]bool
}

func (m *memory) Entries(_ context.Context, _ tenants.WorkspaceID, lane uuid.UUID, from, limit int) ([]archive.Entry, error) {
	var page []archive.Entry
	for _, entry := range m.lanes[lane] {
		if entry.Index >= from && len(page) < limit {
			page = append(page, entry)
		}
	}
	return page, nil
}

func (m *memory) Objects(_ context.Context, _ tenants.WorkspaceID, hashes []conversation.Hash) ([]archive.Object, error) {
	objects := make([]archive.Object, len(hashes))
	for i, hash := range hashes {
		if objects[i].Raw = m.bytes[hash]; m.broken[hash] {
			objects[i] = archive.Object{Damage: archive.ErrDamaged}
		}
	}
	return objects, nil
}

func (m *memory) Head(_ context.Context, _ tenants.WorkspaceID, lane uuid.UUID) (archive.Head, error) {
	return m.heads[lane], nil
}

func (m *memory) Answers(_ context.Context, _ tenants.WorkspaceID, _ uuid.UUID, after archive.Answer, limit int) ([]archive.Answer, error) {
	for i, answer := range m.answers {
		if answer.At.After(after.At) {
			return m.answers[i:min(i+limit, len(m.answers))], nil
		}
	}
	return nil, nil
}

func (m *memory) add(lane uuid.UUID, messages ...[]byte) {
	head := m.heads[lane]
	if head.Messages == 0 {
		head = archive.NewHead()
	}
	for _, raw := range messages {
		hash := conversation.Hash(sha256.Sum256(raw))
		m.bytes[hash] = raw
		m.lanes[lane] = append(m.lanes[lane], archive.Entry{
			Index: head.Messages, Hash: hash, Role: conversation.User, Tokens: 3, Size: len(raw), StoredAt: at(head.Messages),
		})
		head = head.Extend(hash)
	}
	m.heads[lane] = head
}

func at(seconds int) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

// setup returns an archive with a session of two lanes, the second a fork.
func setup() (*memory, export.Session) {
	m := &memory{
		lanes: map[uuid.UUID][]archive.Entry{}, bytes: map[conversation.Hash][]byte{}, heads: map[uuid.UUID]archive.Head{},
		broken: map[conversation.Hash]bool{},
	}
	lane, fork := uuid.MustParse("00000000-0000-4000-8000-00000000000a"), uuid.MustParse("00000000-0000-4000-8000-00000000000b")
	shared := [][]byte{
		[]byte("{ \"role\" :\t\"user\",\r\n \"content\":\"\\u00e9é 漢字 🙂 <b>&\u2028\", \"n\": 1.0, \"n\": 1e2 }\n"),
		[]byte("\x00\xff\xfe not UTF-8"), []byte(`{"role":"assistant","content":"three"}`),
	}
	m.add(lane, append(shared, []byte("four"), []byte{}, []byte("six"))...)
	m.add(fork, append(shared, []byte("another four"))...)
	for i, raw := range []string{"first answer", "four"} {
		hash := conversation.Hash(sha256.Sum256([]byte(raw)))
		m.bytes[hash] = []byte(raw)
		m.answers = append(m.answers, archive.Answer{Exchange: uuid.New(), Lane: lane, At: at(i), Hash: hash, Size: len(raw)})
	}
	return m, export.Session{
		Workspace: tenants.NewWorkspaceID(), ID: uuid.New(), Title: "Fix the parser", Client: "claude-code", Format: conversation.Anthropic,
		StartedAt: at(0), LastAt: at(9), ExportedAt: at(10),
		Lanes: []export.Lane{{ID: lane, Kind: "main", Messages: 6, Order: &export.Order{At: at(8), Instructions: "keep the tests"}}, {ID: fork, Kind: "main", Parent: lane, ForkAt: 3, Messages: 4}},
		Projection: func(_ context.Context, of uuid.UUID) (*export.Projection, error) {
			if of != lane {
				return nil, nil
			}
			return &export.Projection{Number: 1, Covers: 2, Reason: "target", At: at(5), Parts: []export.Part{{To: 1}, {From: 1, To: 2, Level: 2, Raw: []byte("short")}}}, nil
		},
		Pins: func(_ context.Context, of uuid.UUID) ([]export.Pin, error) {
			if of == fork {
				return nil, nil
			}
			return []export.Pin{{Message: 4, At: at(6)}}, nil
		},
	}
}

func write(t *testing.T, m *memory, sessions ...export.Session) []byte {
	t.Helper()
	var file bytes.Buffer
	writer := export.NewWriter(&file)
	for _, session := range sessions {
		if err := writer.Session(t.Context(), m, session); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func verify(t *testing.T, file []byte) (export.Totals, []string) {
	t.Helper()
	var faults []string
	totals, err := export.Verify(bytes.NewReader(file), func(fault export.Fault) { faults = append(faults, fault.String()) })
	if err != nil {
		t.Fatal(err)
	}
	if totals.Faults != len(faults) {
		t.Errorf("%d faults counted, %d told", totals.Faults, len(faults))
	}
	return totals, faults
}

// E2, S31: what is exported opens without us.
func TestAnExportVerifies(t *testing.T) {
	t.Parallel()
	m, session := setup()
	file := write(t, m, session)
	totals, faults := verify(t, file)
	if len(faults) != 0 {
		t.Fatalf("faults: %q\n%s", faults, file)
	}
	if totals.Sessions != 1 || totals.Lanes != 2 || totals.Messages != 10 || totals.Answers != 2 || totals.SHA256 == "" {
		t.Errorf("totals are %+v", totals)
	}
	if got := bytes.Count(file, []byte("three")); got != 1 {
		t.Errorf("a message of both lanes is written %d times", got)
	}
}

func TestAFileOfSeveralSessionsVerifies(t *testing.T) {
	t.Parallel()
	m, session := setup()
	file := write(t, m, session, session, session)
	if totals, faults := verify(t, file); len(faults) != 0 || totals.Sessions != 3 || totals.Messages != 30 {
		t.Errorf("totals %+v, faults %q", totals, faults)
	}
}

// edits are what can happen to a file, each with words that one of the faults must
// have. Line 0 is the manifest, 1 to 6 are the first lane, 7 its projection, 8 its pin,
// 9 its order, 10 to 13 the fork, 14 and 15 answers, 16 the end, 17 the file's end.
func edits() map[string]struct {
	edit func(lines []string) []string
	want string
} {
	type edit = struct {
		edit func(lines []string) []string
		want string
	}
	replace := func(at int, old, with string) func([]string) []string {
		return func(lines []string) []string {
			lines[at] = strings.Replace(lines[at], old, with, 1)
			return lines
		}
	}
	return map[string]edit{
		"a byte of a message":       {replace(3, "three", "thrEe"), "line 4: message of lane 00000000-0000-4000-8000-00000000000a, index 2: its bytes do not have its SHA-256"},
		"a byte of an answer":       {replace(14, "first", "First"), "line 15: answer index 0: its bytes do not have"},
		"a byte of base64":          {replace(2, `"base64":"AP`, `"base64":"BP`), "index 1: its bytes"},
		"a role":                    {replace(3, `"role":"user"`, `"role":"system"`), "the bytes before this line are not those"},
		"a byte of a projection":    {replace(7, "short", "shirt"), "the bytes before this line are not those"},
		"a pin":                     {replace(8, `"message":4`, `"message":5`), "the bytes before this line are not those"},
		"a pin's lane":              {replace(8, "00000000000a", "00000000000c"), "a pin belongs to lane"},
		"an order":                  {replace(9, "keep", "drop"), "the bytes before this line are not those"},
		"an order's lane":           {replace(9, "00000000000a", "00000000000c"), "an order belongs to lane"},
		"the manifest":              {replace(0, "Fix the parser", "Fix the lexer"), "the manifest of session"},
		"the manifest's count":      {replace(0, `"messages":6`, `"messages":7`), "the manifest says 7"},
		"an index":                  {replace(4, `"index":3`, `"index":4`), "index 4: its link does not follow"},
		"a lane":                    {replace(4, "00000000000a", "00000000000c"), "which the manifest does not name"},
		"a size":                    {replace(4, `"size":4`, `"size":5`), "has 4 bytes and says 5"},
		"the totals":                {replace(16, `"messages":10`, `"messages":9`), "its end says 9"},
		"the file's end":            {replace(17, `"lines":17`, `"lines":16`), "its end says 16"},
		"a version of later":        {replace(0, `"palimpsest_export":2`, `"palimpsest_export":3`), "has the format 3"},
		"a version of earlier":      {replace(0, `"palimpsest_export":2`, `"palimpsest_export":1`), "has the format 1"},
		"a missing message":         {func(l []string) []string { return append(l[:4], l[5:]...) }, "index 4: its link does not follow"},
		"the last message missing":  {func(l []string) []string { return append(l[:6], l[7:]...) }, "has 5 entries; its end says 6"},
		"a missing answer":          {func(l []string) []string { return append(l[:15], l[16:]...) }, "the chain of answers has 1 entries"},
		"a missing manifest":        {func(l []string) []string { return l[1:] }, "stands outside of any session"},
		"a missing end":             {func(l []string) []string { return append(l[:16], l[17:]...) }, "the file ends before session"},
		"two messages swapped":      {func(l []string) []string { l[3], l[4] = l[4], l[3]; return l }, "in another order"},
		"two lanes' lines mixed":    {func(l []string) []string { l[6], l[13] = l[13], l[6]; return l }, "the bytes before this line are not those"},
		"a line twice":              {func(l []string) []string { return append(l[:4], append([]string{l[3]}, l[4:]...)...) }, "comes twice"},
		"a foreign line":            {func(l []string) []string { return append(l[:4], append([]string{`{"type":"note"}`}, l[4:]...)...) }, `line 5: has the type "note"`},
		"no JSON":                   {func(l []string) []string { return append(l[:4], append([]string{"hello"}, l[4:]...)...) }, "line 5: is no JSON object"},
		"a foreign member":          {replace(4, `"role"`, `"rule":1,"role"`), "cannot be read"},
		"an empty line":             {func(l []string) []string { return append(l[:4], append([]string{""}, l[4:]...)...) }, "line 5: is no JSON object"},
		"a line after the end":      {func(l []string) []string { return append(l, `{"type":"note"}`) }, "stands after the file's last line"},
		"cut between lines":         {func(l []string) []string { return l[:9] }, "the file is cut off"},
		"cut before the last line":  {func(l []string) []string { return l[:17] }, "the file is cut off"},
		"nothing":                   {func([]string) []string { return nil }, "the file is empty"},
		"a message without bytes":   {replace(4, `"text":"four"`, `"damage":""`), "has no bytes, and no message before it is the same"},
		"a manifest in the section": {func(l []string) []string { return append(l[:4], append([]string{l[0]}, l[4:]...)...) }, "opens a session before the last one"},
	}
}

func TestEveryChangeOfAFileIsNoticed(t *testing.T) {
	t.Parallel()
	m, session := setup()
	file := write(t, m, session)
	for name, test := range edits() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := strings.Split(strings.TrimSuffix(string(file), "\n"), "\n")
			if len(lines) != 18 {
				t.Fatalf("the file has %d lines: %s", len(lines), file)
			}
			changed := strings.Join(test.edit(lines), "\n")
			if changed += "\n"; changed == string(file) {
				t.Fatal("the edit changes nothing")
			}
			_, faults := verify(t, []byte(strings.TrimPrefix(changed, "\n")))
			if !strings.Contains(strings.Join(faults, "\n"), test.want) {
				t.Errorf("faults are\n%s\nwant one with %q", strings.Join(faults, "\n"), test.want)
			}
		})
	}
}

func TestAFileCutAnywhereOrWithAnyByteChangedIsFaulty(t *testing.T) {
	t.Parallel()
	m, session := setup()
	file := write(t, m, session)
	for cut := range file {
		if _, faults := verify(t, file[:cut]); len(faults) == 0 {
			t.Fatalf("cut at byte %d of %d: no fault", cut, len(file))
		}
	}
	for place := range file {
		changed := bytes.Clone(file)
		changed[place] ^= 1
		if _, faults := verify(t, changed); len(faults) == 0 {
			t.Fatalf("byte %d changed: no fault", place)
		}
	}
}

func TestDamageOfTheArchiveIsExportedAsSuch(t *testing.T) {
	t.Parallel()
	m, session := setup()
	lane := session.Lanes[0].ID
	m.broken[sha256.Sum256([]byte("six"))] = true
	_, faults := verify(t, write(t, m, session))
	if len(faults) != 1 || !strings.Contains(faults[0], "index 5: was damaged in the archive") {
		t.Errorf("a damaged message: %q", faults)
	}
	m, session = setup()
	m.lanes[lane] = append(m.lanes[lane][:2:2], m.lanes[lane][3:]...) // a row taken away
	_, faults = verify(t, write(t, m, session))
	if len(faults) == 0 || !strings.Contains(faults[0], "its place is empty") {
		t.Errorf("a row taken away: %q", faults)
	}
	m, session = setup()
	m.lanes[lane][1].Hash, m.lanes[lane][2].Hash = m.lanes[lane][2].Hash, m.lanes[lane][1].Hash
	_, faults = verify(t, write(t, m, session))
	if len(faults) == 0 || !strings.Contains(strings.Join(faults, "\n"), "not those that were archived") {
		t.Errorf("rows exchanged: %q", faults)
	}
}

// failing is an archive that fails after some reads.
type failing struct {
	*memory

	left int
}

func (f *failing) Objects(ctx context.Context, workspace tenants.WorkspaceID, hashes []conversation.Hash) ([]archive.Object, error) {
	if f.left--; f.left < 0 {
		return nil, errors.New("database is down")
	}
	return f.memory.Objects(ctx, workspace, hashes)
}

func TestAnExportThatFailsHasNoEnd(t *testing.T) {
	t.Parallel()
	m, session := setup()
	var file bytes.Buffer
	writer := export.NewWriter(&file)
	if err := writer.Session(t.Context(), &failing{memory: m, left: 1}, session); err == nil {
		t.Fatal("no error")
	}
	if err := writer.Close(); err == nil {
		t.Error("a failed file is closed as if it were whole")
	}
	if _, faults := verify(t, file.Bytes()); len(faults) == 0 {
		t.Error("the file verifies")
	}
}

// A link can be made again with nothing but SHA-256.
func TestTheChainIsWhatItIsSaidToBe(t *testing.T) {
	t.Parallel()
	message := sha256.Sum256([]byte("hello"))
	head := archive.NewHead()
	first := sha256.Sum256([]byte("palimpsest chain 1"))
	if head.Link != first {
		t.Errorf("the chain begins with %x", head.Link)
	}
	for index := range 3 {
		place := []byte{0, 0, 0, 0, 0, 0, 0, byte(index)}
		want := sha256.Sum256(append(append(bytes.Clone(head.Link[:]), place...), message[:]...))
		if head = head.Extend(message); head.Link != want || head.Messages != index+1 {
			t.Fatalf("link %d is %s", index, hex.EncodeToString(head.Link[:]))
		}
	}
}

// counting counts what is written and looks at the memory in use on the way.
type counting struct {
	bytes int64
	most  uint64
	calls int
}

func (c *counting) Write(p []byte) (int, error) {
	if c.calls++; c.calls%1000 == 0 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		c.most = max(c.most, stats.HeapAlloc)
	}
	c.bytes += int64(len(p))
	return len(p), nil
}

// generated is a lane of many messages that are made when they are asked for.
type generated struct {
	*memory

	size int
}

func (g *generated) Objects(_ context.Context, _ tenants.WorkspaceID, hashes []conversation.Hash) ([]archive.Object, error) {
	objects := make([]archive.Object, len(hashes))
	for i := range objects {
		objects[i].Raw = bytes.Repeat([]byte("x"), g.size)
	}
	return objects, nil
}

func TestALongSessionIsWrittenInLittleMemory(t *testing.T) { //nolint:paralleltest // measures the memory of the process
	m, session := setup()
	lane, head := uuid.New(), archive.NewHead()
	const messages, size = 10_000, 20_000
	for index := range messages {
		hash := conversation.Hash(sha256.Sum256(fmt.Appendf(nil, "%d", index)))
		m.lanes[lane] = append(m.lanes[lane], archive.Entry{Index: index, Hash: hash, Size: size})
		head = head.Extend(hash)
	}
	m.heads[lane] = head
	session.Lanes, m.answers = []export.Lane{{ID: lane, Messages: messages}}, nil
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	out := &counting{}
	if err := export.NewWriter(out).Session(t.Context(), &generated{memory: m, size: size}, session); err != nil {
		t.Fatal(err)
	}
	if out.bytes < messages*size || out.calls < messages {
		t.Fatalf("%d bytes in %d lines", out.bytes, out.calls)
	}
	if grown := int64(out.most) - int64(before.HeapAlloc); grown > 24<<20 {
		t.Errorf("%d MB are in use for a file of %d MB", grown>>20, out.bytes>>20)
	}
}

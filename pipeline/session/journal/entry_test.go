package journal

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
)

// What is cut off, or in a format of nobody's, is not read.
func TestDamagedEntriesAreNotRead(t *testing.T) {
	t.Parallel()
	held := content{Projection: session.Projection{Number: 4, Parts: []session.Part{{Raw: []byte{}}, {From: 1, To: 2}}}, Empty: []int{0}}
	for i := range 3 {
		held.Seen.Messages.Entries = append(held.Seen.Messages.Entries, archive.Entry{Index: i, Raw: fmt.Appendf(nil, `{"n":%d}`, i), Size: 7})
	}
	packed, err := pack(held)
	if err != nil {
		t.Fatal(err)
	}
	got, err := unpack(packed)
	got.Entries = 0
	if err != nil || !reflect.DeepEqual(got, held) {
		t.Errorf("%+v (%v), want %+v", got, err, held)
	}
	for name, damaged := range map[string][]byte{"cut off": packed[:len(packed)-9], "another format": packed[1:], "nothing": nil} {
		if _, err := unpack(damaged); !errors.Is(err, errUnreadable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The entry in testdata has a value in every field that there was when it was written.
func TestEveryFieldOfAnEarlierEntryIsRead(t *testing.T) {
	t.Parallel()
	packed, err := os.ReadFile("testdata/earlier.epoch")
	if err != nil {
		t.Fatal(err)
	}
	held, err := unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	held.Entries = 0 // they are among those of Seen by now
	got, err := json.Marshal(toWritten(&held))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/earlier.json")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := textsOf(t, got), textsOf(t, want); !maps.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	again, err := pack(held)
	if err != nil {
		t.Fatal(err)
	}
	if held, err = unpack(again); err != nil {
		t.Fatal(err)
	}
	held.Entries = 0
	if got, err = json.Marshal(toWritten(&held)); err != nil || !maps.Equal(textsOf(t, got), textsOf(t, want)) {
		t.Errorf("written and read as %s (%v), want %s", got, err, want)
	}
}

// A field that session.Update gets and written.go does not list would be lost with the process.
func TestEveryFieldIsWritten(t *testing.T) {
	t.Parallel()
	var held content
	fill(t, reflect.ValueOf(&held.Seen).Elem())
	packed, err := pack(held)
	if err != nil {
		t.Fatal(err)
	}
	got, err := unpack(packed)
	got.Entries = 0 // they are among those of Seen by now
	if err != nil || !reflect.DeepEqual(got.Seen, held.Seen) {
		t.Errorf("read %+v (%v), want %+v", got.Seen, err, held.Seen)
	}
}

// fill gives every exported field of a value, and of what it holds, something that is not zero.
func fill(t *testing.T, value reflect.Value) {
	t.Helper()
	if value.Type() == reflect.TypeFor[time.Time]() {
		value.Set(reflect.ValueOf(time.Unix(9, 0).UTC()))
		return
	}
	switch value.Kind() {
	case reflect.Struct:
		for _, field := range value.Fields() {
			if field.CanSet() {
				fill(t, field)
			}
		}
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(t, value.Elem())
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(t, value.Index(0))
	case reflect.Array:
		for i := range value.Len() {
			fill(t, value.Index(i))
		}
	case reflect.Map:
		key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		fill(t, key)
		fill(t, element)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, element)
	case reflect.String:
		value.SetString("x")
	case reflect.Bool:
		value.SetBool(true)
	default:
		switch {
		case value.CanInt():
			value.SetInt(7)
		case value.CanUint():
			value.SetUint(7)
		case value.CanFloat():
			value.SetFloat(7)
		default:
			t.Fatalf("a %s cannot be filled", value.Type())
		}
	}
}

// A version whose session.Update had no groups of fields reads what this one writes: two versions
// share a disk while one replaces the other.
func TestFieldsAreWrittenInOneList(t *testing.T) {
	t.Parallel()
	held := content{Seen: session.Update{
		Ancestry: session.Ancestry{ForkAt: 3}, Naming: session.Naming{Name: "run"},
		Messages: session.Messages{Position: 5}, Increment: session.Increment{Exchanges: 1},
	}}
	packed, err := pack(held)
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := zstd.NewReader(bytes.NewReader(bytes.TrimPrefix(packed, []byte{format})))
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	type seen struct {
		ForkAt    int
		Name      string
		Position  int
		Exchanges int
	}
	var got struct{ Seen seen }
	if err := gob.NewDecoder(decoder).Decode(&got); err != nil || got.Seen != (seen{ForkAt: 3, Name: "run", Position: 5, Exchanges: 1}) {
		t.Errorf("read as %+v (%v)", got.Seen, err)
	}
}

// textsOf returns the members of an entry's session and projection as JSON, by their names.
func textsOf(t *testing.T, entry []byte) map[string]string {
	t.Helper()
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(entry, &parts); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, part := range []string{"Seen", "Projection"} {
		var members map[string]any
		if err := json.Unmarshal(parts[part], &members); err != nil {
			t.Fatal(err)
		}
		for name, value := range members {
			if value == nil {
				continue
			}
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			texts[part+"."+name] = string(text)
		}
	}
	return texts
}

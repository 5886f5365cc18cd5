package tenants_test

import (
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

func TestAFilterIsReadFromAnAddress(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("019a1234-0000-7000-8000-00000000abcd")
	for query, want := range map[string]tenants.ExchangeFilter{
		"":                                       {},
		"tag=&status=&module=&id=":               {},
		"id=" + strings.ToUpper(id.String()):     {ID: id.String()},
		"session=" + id.String():                 {Session: id},
		"key=" + id.String() + "&client=c":       {APIKey: id, Client: "c"},
		"model=m&status=4xx":                     {Model: "m", AnswerFilter: tenants.AnswerFilter{StatusClass: 4}},
		"error_from=proxy&miss=cold_start":       {AnswerFilter: tenants.AnswerFilter{ErrorFrom: "proxy", MissCause: "cold_start"}},
		"module=ipc":                             {ModuleFilter: tenants.ModuleFilter{Module: "ipc"}},
		"module=compaction-bridge:failed":        {ModuleFilter: tenants.ModuleFilter{Module: "compaction-bridge", Outcome: "failed"}},
		"tag=a%3D1&tag=b%3D2%3D&tag=a%3D1":       {Tags: tenants.Tags{"a": "1", "b": "2="}},
		"from=x&to=y&cursor=z&limit=1&anything=": {}, // others' to read
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tenants.ParseExchangeFilter(values); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", query, got, err, want)
		}
	}
	for query, field := range map[string]string{
		"id=019a123": "id", "id=019a123g": "id", "id=" + id.String() + "0": "id", "id=019a12340": "id", "session=1": "session", "key=1": "key",
		"status=4": "status", "error_from=nobody": "error_from", "tag=a": "tag", "tag=a%3D1&tag=a%3D2": "tag",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		var invalid tenants.Invalid
		if _, err := tenants.ParseExchangeFilter(values); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v, want one of %s", query, err, field)
		}
	}
}

func TestTheStartOfAnIDIsARange(t *testing.T) {
	t.Parallel()
	whole := "019a1234-5678-7000-8000-00000000abcd"
	for length := 8; length <= len(whole); length++ {
		first, last, ok := tenants.IDRange(whole[:length])
		if !ok || first.String() > whole || last.String() < whole || !strings.HasPrefix(first.String(), whole[:length]) || !strings.HasPrefix(last.String(), whole[:length]) {
			t.Errorf("%s: %s to %s, %v", whole[:length], first, last, ok)
		}
	}
}

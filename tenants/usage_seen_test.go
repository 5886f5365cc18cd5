package tenants_test

import (
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// S3: a key without a person does not see everyone's usage, which a filter without a member selects.
func TestUsageOfNoOneIsNotEveryones(t *testing.T) {
	t.Parallel()
	person, other := uuid.New(), uuid.New()
	for _, test := range []struct {
		person, want uuid.UUID
		all          bool
	}{{person, person, false}, {uuid.Nil, uuid.Max, false}, {person, other, true}, {uuid.Nil, other, true}} {
		may := func(permission tenants.Permission) bool { return test.all && permission == tenants.ReadSpend }
		if got := (tenants.UsageFilter{Member: other}).SeenBy(test.person, may).Member; got != test.want {
			t.Errorf("%s, all %t: %s, want %s", test.person, test.all, got, test.want)
		}
	}
}

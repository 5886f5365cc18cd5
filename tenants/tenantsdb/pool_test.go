package tenantsdb

import (
	"bytes"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"palimpsest/tenants"
)

// A text would do as well, and take the driver's time on every call.
func TestIDsAreSentAsTheirBytes(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("5eed0000-0000-4000-8000-000000000001")
	for _, value := range []any{id, tenants.WorkspaceID(id)} {
		plan, bare, sent := asBytes(value)
		if !sent || bare != (pgtype.UUID{Bytes: id, Valid: true}) {
			t.Fatalf("a %T is sent as %v", value, bare)
		}
		plan.SetNext(pgtype.UUIDCodec{}.PlanEncode(nil, pgtype.UUIDOID, pgtype.BinaryFormatCode, bare))
		if got, err := plan.Encode(value, nil); err != nil || !bytes.Equal(got, id[:]) {
			t.Errorf("a %T is sent as %x, %v", value, got, err)
		}
	}
	if _, _, sent := asBytes("text"); sent {
		t.Error("a text is sent as a uuid")
	}
}

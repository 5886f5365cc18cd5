package tenantsdb_test

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants/tenantsdb"
)

func TestRecordedExchangesAreToldOnceASecondForAllTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	told := make(chan string, 100)
	listener := b.NewListener(slog.New(slog.DiscardHandler))
	listener.Handle(tenantsdb.ExchangesChannel, func(payload string) { told <- payload }, func() {})
	if err := listener.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listener.Stop)
	announcer := b.NewAnnouncer(slog.New(slog.DiscardHandler))
	announcer.Start()
	t.Cleanup(announcer.Stop)

	const each, times = 3, 500
	apiKey := uuid.New()
	for range times {
		announcer.Recorded(b.workspace, []uuid.UUID{apiKey, apiKey, apiKey})
	}
	h := heard{told: told}
	notices, total := 0, 0
	for total < each*times {
		payload := h.next(t)
		count, is := strings.CutPrefix(payload, b.workspace.String()+"/"+apiKey.String()+"/")
		n, err := strconv.Atoi(count)
		if !is || err != nil {
			t.Fatalf("told %s", payload)
		}
		total += n
		notices++
	}
	if total != each*times || notices > 2 {
		t.Errorf("%d exchanges told in %d notices", total, notices)
	}
}

func TestAnnouncerMayBeStoppedTwiceAndWithoutStart(t *testing.T) {
	t.Parallel()
	b := setup(t)

	b.NewAnnouncer(slog.New(slog.DiscardHandler)).Stop()
	announcer := b.NewAnnouncer(slog.New(slog.DiscardHandler))
	announcer.Start()
	announcer.Stop()
	announcer.Stop()
	announcer.Recorded(b.workspace, []uuid.UUID{{}}) // nobody hears it, and no one waits
}

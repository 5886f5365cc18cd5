package tenantsdb_test

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"

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
	for range times {
		announcer.Recorded(b.workspace, each)
	}
	h := heard{told: told}
	notices, total := 0, 0
	for total < each*times {
		name, count, _ := strings.Cut(h.next(t), "/")
		n, err := strconv.Atoi(count)
		if name != b.workspace.String() || err != nil {
			t.Fatalf("told %s/%s", name, count)
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
	announcer.Recorded(b.workspace, 1) // nobody hears it, and no one waits
}

package api

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/pipeline/wire"
)

// How many bytes of an answer are read at a time: there may be thousands of
// streams, and their events are small.
const (
	streamBuffer = 4 << 10
	relayBuffer  = 32 << 10
)

// relay passes an answer on as it comes: every read is written and, unless it is
// the last, flushed at once, with tap beside. filter, which may be nil, takes
// something out of it. An answer that breaks off breaks off for the client too;
// nothing is ever added to its end.
func (s *Server) relay(c echo.Context, event *Event, response *http.Response, tap wire.Tap, filter wire.Filter) error {
	header := c.Response().Header()
	upstream.CopyResponseHeader(header, response.Header)
	event.Status = response.StatusCode
	if response.StatusCode >= http.StatusBadRequest {
		event.ErrorFrom = "provider"
	}
	s.sign(header, event)
	if response.ContentLength >= 0 {
		header.Set("Content-Length", strconv.FormatInt(response.ContentLength, 10))
	}
	c.Response().WriteHeader(response.StatusCode)
	if isEventStream(response) {
		c.Response().Flush() // the first event may take its time
	}

	buffer := make([]byte, streamBuffer)
	if !isEventStream(response) {
		large := s.buffer()
		defer s.buffers.Put(large)
		buffer = *large
	}
	missing := response.ContentLength // negative: nobody knows
	for {
		n, readErr := response.Body.Read(buffer)
		missing -= int64(n)
		if err := pass(c.Response(), filter, buffer[:n], missing != 0, readErr != nil); err != nil {
			event.Aborted = "client"
			return nil
		}
		if n > 0 {
			_, _ = tap.Write(buffer[:n]) // a tap never fails
		}
		switch {
		case readErr == nil:
		case errors.Is(readErr, io.EOF):
			return nil
		case c.Request().Context().Err() != nil:
			event.Aborted = "client"
			return nil
		default:
			event.Aborted = "provider"
			event.ErrorFrom, event.Err = "provider", readErr
			return errBrokeOff
		}
	}
}

// pass writes what has been read of an answer, but for what filter takes out, and
// flushes it if more is to come. ended says that nothing more will be read.
func pass(to *echo.Response, filter wire.Filter, chunk []byte, more, ended bool) error {
	if filter != nil {
		chunk = filter.Pass(chunk)
		if ended {
			chunk = append(chunk, filter.End()...)
		}
	}
	if len(chunk) == 0 {
		return nil
	}
	if _, err := to.Write(chunk); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	if more {
		to.Flush()
	}
	return nil
}

// finish ends a handler after its relay: an answer that broke off is cut for the
// client too, so that it does not take it for a whole one.
func finish(err error) error {
	if errors.Is(err, errBrokeOff) {
		panic(http.ErrAbortHandler)
	}
	return err
}

// errBrokeOff says that the provider's answer ended before its end.
var errBrokeOff = errors.New("the provider's answer broke off")

// sign puts our own headers beside the provider's.
func (s *Server) sign(header http.Header, event *Event) {
	report := &event.Report
	set := func(name, value string) { header.Set("X-Palimpsest-"+name, value) }
	set("Request-Id", event.ID.String())
	signLimits(set, event.ticket)
	if event.ErrorFrom != "" {
		set("Error-Source", event.ErrorFrom)
	}
	if event.Provider != "" {
		set("Provider", event.Provider)
		set("Attempts", strconv.Itoa(event.Attempts))
		set("Overhead-Ms", milliseconds(event.Overhead))
		header.Set("Server-Timing", "palimpsest;dur="+milliseconds(event.Overhead-event.Archiving)+
			", archive;dur="+milliseconds(event.Archiving)+", provider;dur="+milliseconds(event.TTFB))
	}
	if report.Compression == "" {
		return
	}
	if event.Source != "" {
		set("Session-Id", event.Session.String())
		set("Session-Source", event.Source)
		set("Lane", event.Lane.String())
	}
	if trial := event.Trial; trial != nil {
		set("Dry-Run", fmt.Sprintf("%s; before=%d; after=%d; levels=%s", trial.Compression, trial.Before, trial.After, levelList(trial.Levels)))
	}
	set("Modules", moduleList(report.Modules))
	set("Compression", string(report.Compression))
	set("Tokens-Before", strconv.Itoa(report.Before))
	set("Tokens-After", strconv.Itoa(report.After))
	set("Tokens-Saved", strconv.Itoa(report.Before-report.After))
	set("Levels", levelList(report.Levels))
	set("Archived", strconv.Itoa(report.Archived))
	if len(report.Injected) > 0 {
		set("Injected", injectedList(report.Injected))
	}
	set("Cache", string(cmp.Or(report.Cache, pipeline.CacheOff)))
	if len(report.Warnings) > 0 {
		set("Warning", strings.Join(report.Warnings, "; "))
	}
	switch {
	case report.Limit == 0 && event.Model != "":
		set("Context-Window", "unknown")
	case report.Limit > 0:
		set("Context-Window", strconv.Itoa(report.Limit))
		set("Utilization", fmt.Sprintf("%.2f;after=%.2f", share(report.Before, report.Limit), share(report.After, report.Limit)))
	}
}

// buffer returns a buffer of relayBuffer bytes.
func (s *Server) buffer() *[]byte {
	if buffer, ok := s.buffers.Get().(*[]byte); ok {
		return buffer
	}
	buffer := make([]byte, relayBuffer)
	return &buffer
}

// levelList tells how many turns are at each level.
func levelList(levels [4]int) string {
	return fmt.Sprintf("L0=%d,L1=%d,L2=%d,L3=%d", levels[0], levels[1], levels[2], levels[3])
}

// injectedList tells how many items each module has put into the prompt, the ones
// that the contract names first.
func injectedList(items map[string]int) string {
	known := []string{"compaction-bridge", "rehydrator", "patterns"}
	labels := map[string]string{"compaction-bridge": "bridge", "rehydrator": "rehydrated"}
	names := slices.SortedFunc(maps.Keys(items), func(a, b string) int {
		at, bt := slices.Index(known, a), slices.Index(known, b)
		if at < 0 || bt < 0 {
			return cmp.Or(cmp.Compare(bt, at), strings.Compare(a, b)) // those not named come last
		}
		return cmp.Compare(at, bt)
	})
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = fmt.Sprintf("%s=%d", cmp.Or(labels[name], name), items[name])
	}
	return strings.Join(list, ",")
}

func share(part, whole int) float64 { return float64(part) / float64(whole) }

func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 2, 64)
}

package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/spans"
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
// something out of it. whole is called, maybe several times, before a read is written that may
// complete the answer, which tap has read by then. An answer that ends early does so for the
// client too; nothing is ever added to its end.
func (s *Server) relay(c echo.Context, event *RequestLog, response *http.Response, tap wire.Tap, filter wire.Filter, whole func()) (err error) {
	_, span := spans.Start(event.traced.inference.In(c.Request().Context()), "relay answer")
	defer span.EndWith(&err)
	header := c.Response().Header()
	upstream.CopyResponseHeader(header, response.Header)
	event.outcome.relayed(response.StatusCode)
	sign(header, event)
	if response.ContentLength >= 0 {
		header.Set("Content-Length", strconv.FormatInt(response.ContentLength, 10))
	}
	c.Response().WriteHeader(response.StatusCode)
	if isEventStream(response) {
		c.Response().Flush() // the first event may take its time
	}
	refusal := refusalOf(event, response)
	defer s.aside(c.Request().Context(), event, func() { event.outcome.quoted(refusal.text()) })

	var buffer []byte
	if isEventStream(response) {
		buffer = make([]byte, streamBuffer)
	} else {
		large := s.buffer()
		defer s.buffers.Put(large)
		buffer = *large
	}
	missing := response.ContentLength // negative: nobody knows
	for {
		n, readErr := response.Body.Read(buffer)
		missing -= int64(n)
		chunk := buffer[:n]
		isLast := n > 0 && (missing == 0 || isEventStream(response) && mayEnd(chunk))
		if isLast {
			_, _ = tap.Write(chunk) // a tap never fails
			s.aside(c.Request().Context(), event, whole)
		}
		if err := pass(c.Response(), filter, buffer[:n], missing != 0, readErr != nil); err != nil {
			event.outcome.brokeOff("client", nil)
			return nil
		}
		if n > 0 && !isLast {
			_, _ = tap.Write(chunk)
		}
		if n > 0 {
			refusal.hear(chunk)
		}
		switch {
		case readErr == nil:
		case errors.Is(readErr, io.EOF):
			return nil
		case whyEnded(c.Request().Context()) != nil:
			event.outcome.brokeOff("proxy", whyEnded(c.Request().Context()))
			return errBrokeOff
		case c.Request().Context().Err() != nil:
			event.outcome.brokeOff("client", nil)
			return nil
		default:
			event.outcome.brokeOff("provider", readErr)
			return errBrokeOff
		}
	}
}

// mayEnd reports whether a read of a stream may hold the event after which clients wait for
// nothing more.
func mayEnd(chunk []byte) bool {
	for _, last := range []string{"message_stop", "[DONE]", "response.completed", "response.incomplete", "response.failed"} {
		if bytes.Contains(chunk, []byte(last)) {
			return true
		}
	}
	return false
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

// finish ends a handler after its relay: an answer that ended early is cut for the
// client too, so that it does not take it for a whole one.
func finish(err error) error {
	if errors.Is(err, errBrokeOff) {
		panic(http.ErrAbortHandler)
	}
	return err
}

// errBrokeOff says that an answer ended before its end.
var errBrokeOff = errors.New("the answer ended early")

// serverTiming is the one of our headers that others know (W3C, Server Timing).
const serverTiming = "Server-Timing"

// sign puts our own headers beside the provider's. A browser runs nothing of an answer, which is
// shown on the origin of the dashboard: anyone who chooses the base URL chooses what it holds.
func sign(header http.Header, event *RequestLog) {
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	report := &event.Report
	set := func(name, value string) { header.Set("X-Palimpsest-"+name, value) }
	note := func(name, value string) {
		set(name, value)
		event.note(name, value)
	}
	set("Request-Id", event.ID.String())
	signLimits(note, event.held.ticket)
	if event.outcome.ErrorFrom != "" {
		set("Error-Source", event.outcome.ErrorFrom)
	}
	if event.Provider != "" {
		set("Provider", event.Provider)
		set("Attempts", strconv.Itoa(event.Attempts))
		set("Overhead-Ms", milliseconds(event.times.Overhead))
		timing := "palimpsest;dur=" + milliseconds(event.times.Overhead-event.times.Archiving) +
			", archive;dur=" + milliseconds(event.times.Archiving) + ", provider;dur=" + milliseconds(event.times.TTFB)
		header.Set(serverTiming, timing)
		if event.times.Archiving > 0 {
			event.note(serverTiming, timing)
		}
	}
	if report.Compression == "" {
		return
	}
	if event.Source != "" {
		set("Session-Id", event.Session.String())
		note("Session-Source", event.Source)
		set("Lane", event.Lane.String())
	}
	if trial := event.Trial; trial != nil {
		note("Dry-Run", fmt.Sprintf("%s; before=%d; after=%d; levels=%s", trial.Compression, trial.Before, trial.After, pipeline.LevelList(trial.Levels)))
	}
	for _, told := range modules.Catalog().Headers(*report, event.Model != "") {
		set(told.Name, told.Value)
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

func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 2, 64)
}

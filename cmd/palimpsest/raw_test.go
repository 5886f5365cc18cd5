package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/migrations/dbtest"
)

// rawRequest is what a client writes on a connection. KEY in it stands for its API key.
type rawRequest struct {
	name string
	sent string
	want string // the statuses of the answers
	sees string // what the provider is sent: method, target and body of each request
}

const (
	rawHead  = "Host: proxy\r\nX-Api-Key: KEY\r\n"
	rawClose = "Connection: close\r\n\r\n"
	rawNext  = "GET /v1/files/next HTTP/1.1\r\n" + rawHead + rawClose // a request of its own, or one that is smuggled
	seesNext = "GET /v1/files/next "
	rawInner = "GET /v1/files/inner HTTP/1.1\r\nHost: proxy\r\n\r\n" // in a body
)

// rawRequests are requests that no honest client writes: each is refused, or means the same
// to the proxy, to its records and to the provider.
func rawRequests() []rawRequest {
	files, get := "POST /v1/files HTTP/1.1\r\n"+rawHead, "GET /v1/files HTTP/1.1\r\n"+rawHead
	message := "Content-Length: " + strconv.Itoa(len(smallMessage)) + "\r\n" + rawClose + smallMessage
	target := func(target string) string { return "GET " + target + " HTTP/1.1\r\n" + rawHead + rawClose }
	chunked := func(lines, body string) string {
		return files + lines + "Transfer-Encoding: chunked\r\n" + rawClose + body
	}
	return []rawRequest{
		// Where a body ends.
		{"a length and chunks", files + "Content-Length: 999\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n" + rawNext, "200 200", "POST /v1/files hi, " + seesNext},
		{"two lengths", files + "Content-Length: 0\r\nContent-Length: 2\r\n\r\nhi" + rawNext, "400", ""},
		{"the same length twice", files + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi" + rawNext, "200 200", "POST /v1/files hi, " + seesNext},
		{"a list of lengths", files + "Content-Length: 2, 2\r\n\r\nhi" + rawNext, "400", ""},
		{"a signed length", files + "Content-Length: +2\r\n\r\nhi" + rawNext, "400", ""},
		{"a hexadecimal length", files + "Content-Length: 0x2\r\n\r\nhi" + rawNext, "400", ""},
		{"a negative length", files + "Content-Length: -1\r\n\r\n" + rawNext, "400", ""},
		{"a blank before a colon", files + "Content-Length : 2\r\n\r\nhi" + rawNext, "400", ""},
		{"a short length", files + "Content-Length: 2\r\n\r\nhi" + rawNext, "200 200", "POST /v1/files hi, " + seesNext},
		{"a request inside a body", files + "Content-Length: " + strconv.Itoa(len(rawInner)) + "\r\n" + rawClose + rawInner, "200", "POST /v1/files " + rawInner},
		{"a request inside a refused body", "POST /v1/messages HTTP/1.1\r\nHost: proxy\r\nContent-Length: " + strconv.Itoa(len(rawInner)) + "\r\n" + rawClose + rawInner, "401", ""},
		{"two encodings", files + "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" + rawNext, "501", ""},
		{"two lines of encodings", files + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + rawNext, "501", ""},
		{"an unknown encoding", files + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + rawNext, "501", ""},
		{"chunks with a blank before the colon", files + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + rawNext, "400", ""},
		{"chunks in a folded line", files + "Transfer-Encoding:\r\n chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n" + rawNext, "200 200", "POST /v1/files hi, " + seesNext},
		{"extensions of chunks", chunked("", "2;name=\"a;b\"\r\nhi\r\n0;x\r\n\r\n"), "200", "POST /v1/files hi"},
		{"a chunk that ends with a bare line feed", "POST /v1/messages HTTP/1.1\r\n" + rawHead + "Transfer-Encoding: chunked\r\n" + rawClose + "2\nhi\r\n0\r\n\r\n", "400", ""},
		{"a chunk of too many bytes", "POST /v1/messages HTTP/1.1\r\n" + rawHead + "Transfer-Encoding: chunked\r\n" + rawClose + "ffffffffffffffffff\r\nhi\r\n0\r\n\r\n", "400", ""},
		{"a chunk that is longer than it says", "POST /v1/messages HTTP/1.1\r\n" + rawHead + "Transfer-Encoding: chunked\r\n" + rawClose + "2\r\nhigh\r\n0\r\n\r\n", "400", ""},
		{"a relayed chunk that is longer than it says", chunked("", "2\r\nhigh\r\n0\r\n\r\n"), "400", ""},

		// Headers.
		{"a folded header", get + "X-Note: a\r\n  b\r\n" + rawClose, "200", "GET /v1/files "},
		{"a folded key", "GET /v1/files HTTP/1.1\r\nHost: proxy\r\nX-Api-Key: KEY\r\n x\r\n" + rawClose, "401", ""},
		{"a first header that is folded", "GET /v1/files HTTP/1.1\r\n X-A: b\r\n" + rawHead + rawClose, "400", ""},
		{"bare line feeds", strings.ReplaceAll(get+rawClose, "\r\n", "\n"), "200", "GET /v1/files "},
		{"a bare carriage return", get + "X-Note: a\rX-B: c\r\n" + rawClose, "400", ""},
		{"a NUL in a header", get + "X-Note: a\x00b\r\n" + rawClose, "400", ""},
		{"a header without a colon", get + "X-Note\r\n" + rawClose, "400", ""},
		{"a name that is not a token", get + "X(Note): a\r\n" + rawClose, "400", ""},
		{"no host", "GET /v1/files HTTP/1.1\r\nX-Api-Key: KEY\r\n" + rawClose, "400", ""},
		{"two hosts", get + "Host: other\r\n" + rawClose, "400", ""},
		{"two keys, the first wrong", "GET /v1/files HTTP/1.1\r\nHost: proxy\r\nX-Api-Key: sk-other\r\nX-Api-Key: KEY\r\n" + rawClose, "401", ""},
		{"two keys, the second wrong", get + "X-Api-Key: sk-other\r\n" + rawClose, "200", "GET /v1/files "},
		{"a connection that names the keys", get + "Connection: close, X-Api-Key, Authorization, Content-Type\r\n\r\n", "200", "GET /v1/files "},
		{"thousands of headers", get + strings.Repeat("X-A: b\r\n", 5_000) + rawClose, "200", "GET /v1/files "},
		{"headers without end", get + strings.Repeat("X-A: b\r\n", 10_000) + rawClose, "431", ""},
		{"a header without end", get + "X-A: " + strings.Repeat("b", 80_000) + "\r\n" + rawClose, "431", ""},
		{"keys in a trailer", chunked("Trailer: X-Api-Key, Authorization\r\n", "2\r\nhi\r\n0\r\nX-Api-Key: sk-other\r\nAuthorization: Bearer other\r\n\r\n"), "200", "POST /v1/files hi"},
		{"keys in a trailer that is not announced", chunked("", "2\r\nhi\r\n0\r\nX-Api-Key: sk-other\r\nAuthorization: Bearer other\r\n\r\n"), "200", "POST /v1/files hi"},
		{"the key in a trailer only", "POST /v1/messages HTTP/1.1\r\nHost: proxy\r\nTrailer: X-Api-Key\r\nTransfer-Encoding: chunked\r\n" + rawClose + "2\r\n{}\r\n0\r\nX-Api-Key: KEY\r\n\r\n", "401", ""},
		{"a length in a trailer", chunked("Trailer: Content-Length\r\n", "0\r\nContent-Length: 2\r\n\r\n"), "400", ""},
		{"a body that waits and is refused", "POST /v1/messages HTTP/1.1\r\nHost: proxy\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n" + rawClose, "401", ""},
		{"a body that waits and is too large", "POST /v1/messages HTTP/1.1\r\n" + rawHead + "Expect: 100-continue\r\nContent-Length: 100000000\r\n" + rawClose, "413", ""},
		{"a body that waits and is taken", "POST /v1/messages HTTP/1.1\r\n" + rawHead + "Expect: 100-continue\r\n" + message, "100 200", "POST /v1/messages " + smallMessage},
		{"an unknown expectation", files + "Expect: miracles\r\nContent-Length: 2\r\n" + rawClose + "hi", "417", ""},

		// Other protocols.
		{"HTTP/2 with prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "404", ""},
		{"an upgrade to HTTP/2", "POST /v1/messages HTTP/1.1\r\n" + rawHead + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n" + message, "200", "POST /v1/messages " + smallMessage},
		{"an upgrade to WebSocket", "GET /v1/responses HTTP/1.1\r\n" + rawHead + "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" + rawClose, "426", ""},
		{"an upgrade to WebSocket elsewhere", get + "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" + rawClose, "200", "GET /v1/files "},
		{"HTTP/1.0", "GET /v1/files HTTP/1.0\r\n" + rawHead + "\r\n", "200", "GET /v1/files "},
		{"chunks in HTTP/1.0", "POST /v1/files HTTP/1.0\r\n" + rawHead + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "200", "POST /v1/files "},
		{"HTTP/0.9", "GET /v1/files\r\n\r\n", "400", ""},
		{"HTTP/3.0", "GET /v1/files HTTP/3.0\r\n" + rawHead + rawClose, "505", ""},
		{"CONNECT", "CONNECT other.example:443 HTTP/1.1\r\n" + rawHead + rawClose, "404", ""},
		{"CONNECT with a path", "CONNECT /v1/files HTTP/1.1\r\n" + rawHead + rawClose, "405", ""},
		{"a method in small letters", "get /v1/files HTTP/1.1\r\n" + rawHead + rawClose, "405", ""},
		{"tabs in the request line", "GET\t/v1/files\tHTTP/1.1\r\n" + rawHead + rawClose, "400", ""},
		{"two targets", target("/v1/files /v1/other"), "400", ""},

		// Targets.
		{"another server's", target("http://other.example/v1/files"), "200", "GET /v1/files "},
		{"another server's endpoint", "POST http://other.example/v1/messages HTTP/1.1\r\n" + rawHead + message, "200", "POST /v1/messages " + smallMessage},
		{"another server's, with a password", target("https://a:b@other.example/v1/files"), "200", "GET /v1/files "},
		{"another server's that leaves the base path", target("http://other.example/v1/../admin"), "400", ""},
		{"no path", target("http:v1/files"), "404", ""},
		{"an asterisk", target("*"), "404", ""},
		{"an asterisk's options", "OPTIONS * HTTP/1.1\r\n" + rawHead + rawClose, "200", ""},
		{"a fragment", target("/v1/files#part"), "200", "GET /v1/files%23part "},
		{"a NUL", target("/v1/fi\x00les"), "400", ""},
		{"an escaped NUL", target("/v1/fi%00les"), "400", ""},
		{"letters that are not ASCII", target("/v1/fil\u00e9s"), "200", "GET /v1/fil%C3%A9s "},
		{"bytes that are not UTF-8", target("/v1/fil\xe9s"), "400", ""},
		{"overlong dots", target("/v1/\xc0\xae\xc0\xae/admin"), "400", ""},
		{"full-width dots", target("/v1/\uff0e\uff0e/admin"), "400", ""},
		{"a query of another request", target("/v1/files?a=b%0d%0aX-Api-Key:%20sk-other"), "200", "GET /v1/files?a=b%0d%0aX-Api-Key:%20sk-other "},
	}
}

// S3, S38: what is written on a bare connection is refused, or is one request for everyone:
// what is relayed is what is recorded, with the stored key and no other.
func TestRawRequestsAreRefusedOrMeanOneThing(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var arrived []string
	provider := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return // what is left of a request that is refused meanwhile
		}
		mu.Lock()
		defer mu.Unlock()
		arrived = append(arrived, r.Method+" "+r.RequestURI+" "+string(content))
		seen := fmt.Sprint(r.Header, r.Trailer)
		if strings.Count(seen, providerKey) != 1 || strings.Contains(seen, "plm_") || strings.Contains(seen, "sk-other") {
			t.Errorf("%s %s: the provider sees %s", r.Method, r.RequestURI, seen)
		}
		for _, name := range []string{"Connection", "Upgrade", "Http2-Settings", "Trailer", "Te", "Expect"} {
			if r.Header.Get(name) != "" {
				t.Errorf("%s %s: the provider sees %s: %s", r.Method, r.RequestURI, name, r.Header.Get(name))
			}
		}
		_, _ = io.WriteString(out, `{"content":[]}`)
	}))
	t.Cleanup(provider.Close)
	database := dbtest.New(t)
	i := startOn(t, database.OwnerURL, providerdouble.Config{})
	i.double = &providertest.Server{URL: provider.URL}
	w := i.tenant("raw")

	relayed := 0
	for _, test := range rawRequests() {
		got := w.raw(test.sent)
		mu.Lock()
		sees := strings.Join(arrived, ", ")
		relayed += len(arrived)
		arrived = nil
		mu.Unlock()
		if got != test.want || sees != test.sees {
			t.Errorf("%s: answered %q, want %q; the provider sees %q, want %q", test.name, got, test.want, sees, test.sees)
		}
	}
	i.shutdown()
	var recorded int
	if err := database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM exchanges WHERE status = 200").Scan(&recorded); err != nil || recorded != relayed {
		t.Errorf("%d requests were relayed, and %d are recorded (%v)", relayed, recorded, err)
	}
}

// raw writes a request on a connection of its own, and returns the statuses of all answers
// until the program closes it.
func (w *tenant) raw(sent string) string {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.program.addr())
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, strings.ReplaceAll(sent, "KEY", w.key)); err != nil {
		w.t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	var statuses []string
	for {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return strings.Join(statuses, " ")
		}
		statuses = append(statuses, strconv.Itoa(response.StatusCode))
		if strings.Contains(fmt.Sprint(response.Header), providerKey) {
			w.t.Errorf("the answer shows the stored key: %v", response.Header)
		}
		if response.StatusCode != http.StatusContinue {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}
}

// S26, S38: a provider that would change the protocol, which no request asks for, is not
// answered for: the client gets an error, and the connection is no tunnel.
func TestProviderDoesNotChangeTheProtocol(t *testing.T) {
	t.Parallel()
	var listen net.ListenConfig
	provider, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Close() })
	go func() { // ends with the listener
		for {
			conn, err := provider.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nanything")
			}
			_ = conn.Close()
		}
	}()
	i := start(t, providerdouble.Config{})
	i.double = &providertest.Server{URL: "http://" + provider.Addr().String()}
	w := i.tenant("switched")
	upgrade := "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	for _, sent := range []string{
		"GET /v1/files HTTP/1.1\r\n" + rawHead + upgrade + rawClose,
		"POST /v1/messages HTTP/1.1\r\n" + rawHead + upgrade + "Content-Length: " + strconv.Itoa(len(smallMessage)) + "\r\n" + rawClose + smallMessage,
	} {
		if got := w.raw(sent); got != "502" {
			t.Errorf("%.20s: answered %q", sent, got)
		}
	}
}

package connections

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"palimpsest/tenants"
)

// Of is the kind of holder with too many connections.
type Of int

// Kinds of holders.
const (
	OfPlace   Of = iota // an unauthenticated network
	OfKey               // an API key or a login
	OfAccount           // an account
	OfShare             // an account with three quarters of all connections
	OfAll               // everyone
)

// String returns the limit's name in metrics.
func (o Of) String() string { return [...]string{"place", "key", "account", "share", "all"}[o] }

// TooMany is the error for too many connections that are all in use.
type TooMany struct {
	Of    Of
	Limit int // 0 if it depends on the process's file descriptors
}

// retry is the Retry-After value in seconds.
const retry = 5

// Error implements error with advice for the client.
func (e TooMany) Error() string {
	switch e.Of {
	case OfPlace:
		return fmt.Sprintf("%d connections without a valid key or login are open from this network, as many as this installation allows. Close some and try again.", e.Limit)
	case OfKey:
		return fmt.Sprintf("This API key or login has %d connections with a request under way, as many as this installation allows. Wait until some have ended and try again.", e.Limit)
	case OfAccount:
		return fmt.Sprintf("The account that owns this workspace has %d connections with a request under way, as many as this installation allows. Wait until some have ended and try again.", e.Limit)
	case OfShare:
		return "The account that owns this workspace uses three quarters of all connections of this server. Wait until some requests have ended and try again."
	case OfAll:
	}
	return fmt.Sprintf("All connections of this server are in use. Nothing is wrong with your request; try again in %d seconds.", retry)
}

// Status returns the status of the answer.
func (e TooMany) Status() int {
	if e.Of == OfAll {
		return http.StatusServiceUnavailable
	}
	return http.StatusTooManyRequests
}

// RetryAfter returns the value of that header.
func (TooMany) RetryAfter() string { return strconv.Itoa(retry) }

// Unwrap returns a tenants.TooMany.
func (TooMany) Unwrap() error {
	return tenants.TooMany{Wait: retry * time.Second, What: "connections with a request under way"}
}

// body returns the body of the answer, for requests in a format that is not known yet.
func (e TooMany) body() string {
	kind := "rate_limit_error"
	if e.Of == OfAll {
		kind = "overloaded_error"
	}
	return fmt.Sprintf(`{"error":{"type":%q,"message":%q}}`+"\n", kind, e.Error())
}

// answer answers a request, and ends its connection.
func answer(w http.ResponseWriter, err TooMany) {
	w.Header().Set("Retry-After", err.RetryAfter())
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(err.Status())
	_, _ = w.Write([]byte(err.body()))
}

// refusal bounds the time for telling a client that it has too many connections.
const refusal = time.Second

// refuse answers a connection before it is read, and closes it.
func refuse(conn net.Conn, err TooMany) {
	_ = conn.SetDeadline(time.Now().Add(refusal))
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nRetry-After: %s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		err.Status(), http.StatusText(err.Status()), err.RetryAfter(), len(err.body()), err.body())
	_ = conn.Close()
}

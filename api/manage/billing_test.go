package manage_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"palimpsest/api/manage"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
)

// till answers as billing does.
type till struct {
	manage.Billing

	err                error
	payload, signature string
}

func (s *till) Receive(_ context.Context, payload []byte, signature string) error {
	s.payload, s.signature = string(payload), signature
	return s.err
}

// S29: a second signature header is refused before anyone reads the first.
func TestNoticeWithTwoSignatureHeadersIsRefused(t *testing.T) {
	t.Parallel()
	till := &till{}
	e := echo.New()
	manage.Register(e.Group(prefix), manage.Config{Administration: manage.Administration{Billing: till}, People: manage.People{Identity: new(identity.Service), Operators: tenantsdb.Operators{}}})
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, prefix+"/billing/webhook", strings.NewReader("{}"))
	request.Header["Stripe-Signature"] = []string{"t=1,v1=aa", "t=2,v1=bb"}
	answer := httptest.NewRecorder()
	e.ServeHTTP(answer, request)
	if answer.Code != http.StatusBadRequest || till.signature != "" {
		t.Errorf("status %d, billing sees %q", answer.Code, till.signature)
	}
}

// S29: Stripe's notice arrives as it was signed, byte for byte, and only a failure that
// passes has it sent again.
func TestNoticesReachBillingAsTheyWereSigned(t *testing.T) {
	t.Parallel()
	for err, status := range map[error]int{
		nil: http.StatusOK, tenants.ErrDenied: http.StatusBadRequest, tenants.ErrBillingOff: http.StatusNotFound,
		tenants.Invalid{Field: "api_version", Message: "must be 2023-10-16"}: http.StatusUnprocessableEntity,
		errors.New("database is down"):                                       http.StatusInternalServerError,
	} {
		till := &till{err: err}
		e := echo.New()
		manage.Register(e.Group(prefix), manage.Config{Administration: manage.Administration{Billing: till}, People: manage.People{Identity: new(identity.Service), Operators: tenantsdb.Operators{}}})
		server := httptest.NewServer(e)
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+prefix+"/billing/webhook", strings.NewReader("{ \"id\" : 1}\n"))
		request.Header.Set("Stripe-Signature", "t=1,v1=aa")
		response, sendErr := http.DefaultClient.Do(request)
		if sendErr != nil {
			t.Fatal(sendErr)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		server.Close()
		if response.StatusCode != status || till.payload != "{ \"id\" : 1}\n" || till.signature != "t=1,v1=aa" {
			t.Errorf("%v: status %d, %q, %q: %s", err, response.StatusCode, till.payload, till.signature, body)
		}
	}
}

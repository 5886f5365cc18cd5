package upstream

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"palimpsest/tenants"
	"palimpsest/tenants/guard"
)

// S16: a name that was harmless when it was stored and now leads here is looked
// at once it is dialled.
func TestNamesThatLeadToPrivateAddressesAreNotDialled(t *testing.T) {
	t.Parallel()
	var dialled atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { dialled.Add(1) }))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client := New(false)
	dialer := newDialer(guard.New(false).Public)
	dialer.Resolver = rebound(t)
	client.guarded = newTransport(dialer)

	_, err = client.Send(t.Context(), Request{Method: http.MethodPost, Path: "/v1/messages"}, Target{BaseURL: "http://provider.example:" + port})
	if !errors.Is(err, ErrForbiddenAddress) || dialled.Load() != 0 {
		t.Errorf("%d connections, error %v", dialled.Load(), err)
	}
}

// S16, S43: a name that leads to a public address when it is looked at first, and to this
// machine when it is dialled, is not reached.
func TestNameThatIsReboundIsNotDialled(t *testing.T) {
	t.Parallel()
	var dialled atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { dialled.Add(1) }))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	public := guard.New(false).Public
	resolver := resolving(t, [4]byte{8, 8, 8, 8}, [4]byte{127, 0, 0, 1})
	first, err := resolver.LookupIP(t.Context(), "ip4", "provider.example")
	if err != nil || len(first) != 1 || public("tcp4", net.JoinHostPort(first[0].String(), port), nil) != nil {
		t.Fatalf("the first look finds %v, %v", first, err)
	}
	client, dialer := New(false), newDialer(public)
	dialer.Resolver = resolver
	client.guarded = newTransport(dialer)

	_, err = client.Send(t.Context(), Request{Method: http.MethodPost, Path: "/v1/messages"}, Target{BaseURL: "http://provider.example:" + port})
	if !errors.Is(err, ErrForbiddenAddress) || dialled.Load() != 0 {
		t.Errorf("%d connections, error %v", dialled.Load(), err)
	}
}

func TestProvidersOwnAddressIsNotLookedAt(t *testing.T) {
	t.Parallel()
	client := New(false)
	dialer := newDialer(nil)
	dialer.Resolver = rebound(t)
	client.open = newTransport(dialer)
	dialled := make(chan string, 1)
	client.open.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
		dialled <- address
		return nil, errors.New("no network")
	}

	_, err := client.Send(t.Context(), Request{Method: http.MethodPost, Path: "/v1/messages"}, Target{Provider: tenants.ProviderAnthropic})
	if !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrForbiddenAddress) {
		t.Errorf("error %v", err)
	}
	if address := <-dialled; address != "api.anthropic.com:443" {
		t.Errorf("dialled %s", address)
	}
}

func TestProvidersAreSpokenToInHTTP2WhereTheyOfferIt(t *testing.T) {
	t.Parallel()
	protocol := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { protocol <- request.Proto }))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	client := New(true)
	client.open.TLSClientConfig.RootCAs = x509.NewCertPool()
	client.open.TLSClientConfig.RootCAs.AddCert(server.Certificate())

	response, err := client.Send(t.Context(), Request{Method: http.MethodPost, Path: "/v1/messages", Body: make([]byte, 1<<20)}, Target{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if got := <-protocol; got != "HTTP/2.0" {
		t.Errorf("spoken to in %s", got)
	}
}

// rebound returns a resolver that is told that every name is loopback.
func rebound(t *testing.T) *net.Resolver {
	t.Helper()
	return resolving(t, [4]byte{127, 0, 0, 1})
}

// resolving returns a resolver that is told one address after the other, the last one
// for ever.
func resolving(t *testing.T, addresses ...[4]byte) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		packet := make([]byte, 1500)
		for asked := 0; ; {
			n, from, err := server.ReadFrom(packet)
			if err != nil {
				return
			}
			answer, used, err := addressAnswer(packet[:n], addresses[min(asked, len(addresses)-1)])
			if err == nil {
				asked += used
				_, _ = server.WriteTo(answer, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// addressAnswer answers a DNS query with an address, and no address of version 6. used
// counts how often the address is in the answer.
func addressAnswer(query []byte, address [4]byte) (answer []byte, used int, err error) {
	var message dnsmessage.Message
	if err := message.Unpack(query); err != nil {
		return nil, 0, err
	}
	message.Response, message.Additionals = true, nil
	for _, question := range message.Questions {
		if question.Type == dnsmessage.TypeA {
			used++
			message.Answers = append(message.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: question.Class, TTL: 1},
				Body:   &dnsmessage.AResource{A: address},
			})
		}
	}
	answer, err = message.Pack()
	return answer, used, err
}

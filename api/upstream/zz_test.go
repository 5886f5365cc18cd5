package upstream_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"palimpsest/api/upstream"
)

func hammer(t *testing.T, url string, size, n int) (int32, map[string]int) {
	client := upstream.New(true)
	body := bytes.Repeat([]byte("a"), size)
	var workers sync.WaitGroup
	var broken atomic.Int32
	var mu sync.Mutex
	errs := map[string]int{}
	for range 8 {
		workers.Go(func() {
			for range n / 8 {
				response, err := client.Send(t.Context(), http.MethodPost, "/v1/messages", http.Header{}, body, upstream.Target{BaseURL: url})
				if err == nil {
					_, err = io.ReadAll(response.Body)
					response.Body.Close()
				}
				if err != nil {
					broken.Add(1)
					mu.Lock()
					s := err.Error()
					if len(s) > 70 { s = s[len(s)-50:] }
					errs[s]++
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	return broken.Load(), errs
}

func TestZZ(t *testing.T) {
	refusal := bytes.Repeat([]byte("x"), 3000)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(429); w.Write(refusal)
	}))
	defer srv.Close()
	for _, size := range []int{1000, 100 << 10, 300 << 10, 2 << 20} {
		n := 800; if size > 200<<10 { n = 80 }
		b, e := hammer(t, srv.URL, size, n)
		fmt.Println("go server", size, b, "of", n, e)
	}
	for _, mode := range []string{"keepdraining", "linger", "rst"} {
		l, _ := net.Listen("tcp", "127.0.0.1:0")
		go func() {
			for {
				c, err := l.Accept()
				if err != nil { return }
				go func() {
					defer c.Close()
					r := bufio.NewReaderSize(c, 2000)
					for { line, err := r.ReadString('\n'); if err != nil { return }; if line == "\r\n" { break } }
					fmt.Fprintf(c, "HTTP/1.1 413 Too Large\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(refusal), refusal)
					switch mode {
					case "keepdraining": io.Copy(io.Discard, r)
					case "linger": c.(*net.TCPConn).CloseWrite(); io.Copy(io.Discard, r)
					}
				}()
			}
		}()
		for _, size := range []int{1000, 100 << 10, 2 << 20, 8<<20} {
			n := 800; if size > 200<<10 { n = 160 }
			b, e := hammer(t, "http://"+l.Addr().String(), size, n)
			fmt.Println(mode, size, b, "of", n, e)
		}
		l.Close()
	}
}

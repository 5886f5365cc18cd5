package webtest

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"
	"golang.org/x/net/html"

	"palimpsest/tenants"
)

// Person is a person with a browser without JavaScript.
type Person struct {
	*Product

	t         testing.TB
	Email     string
	Workspace tenants.Workspace
	User      tenants.User
	client    *http.Client
}

// Page is a response as a person sees it.
type Page struct {
	*goquery.Document

	Status int
	Path   string // after redirects, with its query
	Header http.Header
	HTML   string
}

// Stranger returns a person without a login.
func (p *Product) Stranger(t testing.TB) *Person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Person{Product: p, t: t, client: &http.Client{Jar: jar}}
}

// SignUp returns a person who has signed up with the form and verified their address.
func (p *Product) SignUp(t testing.TB, name string) *Person {
	t.Helper()
	person := p.SignUpUnverified(t, name)
	if err := p.DB.Accounts.VerifyUser(t.Context(), person.User.ID); err != nil {
		t.Fatal(err)
	}
	p.People.Forget()
	return person.known(t)
}

// SignUpUnverified returns a person who has signed up with the form.
func (p *Product) SignUpUnverified(t testing.TB, name string) *Person {
	t.Helper()
	person := p.Stranger(t)
	person.Email = name + "@example.com"
	page := person.Post("/signup", "email", person.Email, "password", Password, "workspace", name)
	if page.Path != "/overview" {
		t.Fatalf("sign up led to %s with %d: %s", page.Path, page.Status, page.Find("main").Text())
	}
	return person.known(t)
}

// LogIn returns a person with an account, logged in with another browser.
func (p *Product) LogIn(t testing.TB, email string) *Person {
	t.Helper()
	person := p.Stranger(t)
	person.Email = email
	if page := person.Post("/login", "email", email, "password", Password); page.Path != "/overview" {
		t.Fatalf("log in led to %s with %d: %s", page.Path, page.Status, page.Find("main").Text())
	}
	return person.known(t)
}

// known fills in the person's identity.
func (p *Person) known(t testing.TB) *Person {
	t.Helper()
	user, _, err := p.DB.Accounts.UserByEmail(t.Context(), p.Email)
	if err != nil {
		t.Fatal(err)
	}
	memberships, err := p.DB.Workspaces.Memberships(t.Context(), user.ID)
	if err != nil || len(memberships) != 1 {
		t.Fatalf("%d memberships: %v", len(memberships), err)
	}
	p.User, p.Workspace = user, memberships[0].Workspace
	return p
}

// Link returns the path of the link in the person's newest mail with this beginning of the subject.
func (p *Person) Link(subject string) string {
	p.t.Helper()
	mails, err := p.Mails.Kept(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, mail := range mails {
		_, link, found := strings.Cut(mail.Text, PublicURL)
		if found && mail.To == p.Email && strings.HasPrefix(mail.Subject, subject) {
			return strings.Fields(link)[0]
		}
	}
	p.t.Fatalf("no mail %q to %s", subject, p.Email)
	return ""
}

// As changes the person's role in their workspace.
func (p *Person) As(role tenants.Role) *Person {
	p.t.Helper()
	if _, err := p.Database.Owner(p.t).Exec(p.t.Context(), "UPDATE members SET role = $1 WHERE user_id = $2", string(role), p.User.ID); err != nil {
		p.t.Fatal(err)
	}
	// A new login, because the principal of the old one is cached for a moment.
	p.client.Jar, _ = cookiejar.New(nil) // never fails without options
	p.Post("/login", "email", p.Email, "password", Password)
	return p
}

// Colleague returns a person who is logged in to the person's workspace with a role.
func (p *Person) Colleague(role tenants.Role) *Person {
	p.t.Helper()
	colleague := p.SignUp(p.t, string(role)+"-"+uuid.NewString())
	owner := p.Database.Owner(p.t)
	if _, err := owner.Exec(p.t.Context(), "DELETE FROM logins WHERE user_id = $1", colleague.User.ID); err != nil {
		p.t.Fatal(err)
	}
	const move = "UPDATE members SET workspace_id = $1 WHERE user_id = $2"
	if _, err := owner.Exec(p.t.Context(), move, p.Workspace.ID, colleague.User.ID); err != nil {
		p.t.Fatal(err)
	}
	colleague.Workspace = p.Workspace
	return colleague.As(role)
}

// Get opens a page.
func (p *Person) Get(path string, header ...string) Page {
	p.t.Helper()
	return p.send(http.MethodGet, path, nil, header)
}

// Open opens a page whose answer may never end, and leaves it once it has begun. It reads no HTML, because a
// stream has none.
func (p *Person) Open(path string) Page {
	p.t.Helper()
	ctx, leave := context.WithCancel(p.t.Context())
	defer leave()
	response := p.begin(ctx, path)
	defer response.Body.Close()
	if response.Header.Get("Content-Type") == "text/event-stream" {
		response.Body = http.NoBody
	}
	return p.page(response)
}

// Stream opens a stream that ends with the context. The caller closes it.
func (p *Person) Stream(ctx context.Context, path string) io.ReadCloser {
	p.t.Helper()
	response := p.begin(ctx, path)
	if response.Header.Get("Content-Type") != "text/event-stream" {
		_ = response.Body.Close()
		p.t.Fatalf("%s is no stream: status %d", path, response.StatusCode)
	}
	return response.Body
}

// begin returns a page's response before its body is read.
func (p *Person) begin(ctx context.Context, path string) *http.Response {
	p.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address(path), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := p.client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	return response
}

// Kept returns the person with a copy of their browser, so that cookies set by its answers stay there.
func (p *Person) Kept() *Person {
	p.t.Helper()
	kept := p.Stranger(p.t)
	address, err := url.Parse(p.URL)
	if err != nil {
		p.t.Fatal(err)
	}
	kept.client.Jar.SetCookies(address, p.Cookies())
	return kept
}

// Post sends a form with names and values.
func (p *Person) Post(path string, namesAndValues ...string) Page {
	p.t.Helper()
	return p.send(http.MethodPost, path, encoded(namesAndValues), []string{"Content-Type", "application/x-www-form-urlencoded"})
}

// PostPart sends a form as a page's scripts do, and gets a part of the page.
func (p *Person) PostPart(path string, namesAndValues ...string) Page {
	p.t.Helper()
	return p.send(http.MethodPost, path, encoded(namesAndValues), []string{
		"Content-Type", "application/x-www-form-urlencoded", "HX-Request", "true", "HX-Request-Type", "partial",
	})
}

// encoded returns a form's body as browsers encode it.
func encoded(namesAndValues []string) io.Reader {
	form := url.Values{}
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		form.Add(namesAndValues[i], namesAndValues[i+1])
	}
	return strings.NewReader(form.Encode())
}

// Upload sends a form with one file in a field; "" as its name means that no file was chosen. The other
// fields hold the values.
func (p *Person) Upload(path, field, name, content string, namesAndValues ...string) Page {
	p.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile(field, name)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := io.WriteString(part, content); err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		if err := form.WriteField(namesAndValues[i], namesAndValues[i+1]); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		p.t.Fatal(err)
	}
	return p.send(http.MethodPost, path, &body, []string{"Content-Type", form.FormDataContentType()})
}

// PostFrom sends an empty form as another site's page would.
func (p *Person) PostFrom(path, site string) Page {
	p.t.Helper()
	return p.send(http.MethodPost, path, strings.NewReader(""), []string{
		"Content-Type", "application/x-www-form-urlencoded", "Origin", site, "Sec-Fetch-Site", "cross-site",
	})
}

// Cookies returns the browser's cookies.
func (p *Person) Cookies() []*http.Cookie {
	address, err := url.Parse(p.URL)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.client.Jar.Cookies(address)
}

func (p *Person) send(method, path string, body io.Reader, header []string) Page {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.address(path), body)
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
	}
	response, err := p.client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	return p.page(response)
}

// page reads a response.
func (p *Person) page(response *http.Response) Page {
	p.t.Helper()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	document, err := goquery.NewDocumentFromReader(strings.NewReader(string(content)))
	if err != nil {
		p.t.Fatal(err)
	}
	return Page{
		Document: document, Status: response.StatusCode, Path: response.Request.URL.RequestURI(), Header: response.Header, HTML: string(content),
	}
}

// Text returns the text of the matching elements, with white space collapsed, and cells and lines separated.
func (p Page) Text(selector string) string {
	var text strings.Builder
	for _, node := range p.Find(selector).Nodes {
		write(&text, node)
		text.WriteByte(' ')
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

// write appends a node's text with its descendants'.
func write(text *strings.Builder, node *html.Node) {
	if node.Type == html.TextNode {
		text.WriteString(node.Data)
	}
	for child := node.FirstChild; child != nil; child = child.NextSibling {
		write(text, child)
	}
	if slices.Contains([]string{"td", "th", "tr", "li", "p", "div", "dt", "dd", "h1", "h2", "h3", "b", "section"}, node.Data) {
		text.WriteByte(' ')
	}
}

// TestID returns the text of the element with a data-testid.
func (p Page) TestID(id string) string { return p.Text(`[data-testid="` + id + `"]`) }

// Has reports whether an element matches.
func (p Page) Has(selector string) bool { return p.Find(selector).Length() > 0 }

// SetCookie sends a form without following redirects and returns the response's Set-Cookie header.
func (p *Person) SetCookie(path string, namesAndValues ...string) string {
	p.t.Helper()
	return p.direct().Post(path, namesAndValues...).Header.Get("Set-Cookie")
}

// Direct opens a page without following redirects.
func (p *Person) Direct(path string, headers ...string) Page {
	p.t.Helper()
	return p.direct().Get(path, headers...)
}

// direct returns the person with a browser that does not follow redirects.
func (p *Person) direct() *Person {
	once := *p.client
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	direct := *p
	direct.client = &once
	return &direct
}

package demo

import (
	"context"
	"net/http"

	"palimpsest/api/apiclient"
)

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// person is a member of the team, who uses the product through its JSON API.
type person struct {
	*apiclient.Client

	email string
}

func newPerson(url, email string) (*person, error) {
	client, err := apiclient.New(url, browser)
	return &person{Client: client, email: email}, err
}

// logIn logs the person in again.
func (p *person) logIn(ctx context.Context) error {
	return p.Call(ctx, http.MethodPost, "/login", map[string]string{"email": p.email, "password": Password}, nil)
}

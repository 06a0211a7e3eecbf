package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// Poster posts to one URL, or requests it.
type Poster struct {
	URL    string
	Client *http.Client
}

// answerTimeout is how long a receiver may take to answer.
const answerTimeout = 5 * time.Second

// NewPoster returns a poster to address.
func NewPoster(address string) *Poster { return &Poster{URL: address, Client: Client()} }

// Client returns a client that follows no redirect: what is sent is signed, and meant for one address only.
func Client() *http.Client {
	return &http.Client{
		Timeout:       answerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// PostJSON posts v once; see Post.
func (p *Poster) PostJSON(ctx context.Context, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return backoff.Permanent(fmt.Errorf("alert: encode: %w", err))
	}
	return p.Post(ctx, body, http.Header{"Content-Type": {"application/json"}})
}

// Post posts body once. An answer other than 2xx is an error, and permanent unless it is
// 408, 429 or 5xx; Retry-After in seconds is obeyed.
func (p *Poster) Post(ctx context.Context, body []byte, header http.Header) error {
	return p.do(ctx, http.MethodPost, body, header)
}

// Get requests the URL once. Its errors are those of Post.
func (p *Poster) Get(ctx context.Context) error { return p.do(ctx, http.MethodGet, nil, http.Header{}) }

func (p *Poster) do(ctx context.Context, method string, body []byte, header http.Header) error {
	req, err := http.NewRequestWithContext(ctx, method, p.URL, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(fmt.Errorf("alert: send: %w", withoutURL(err)))
	}
	req.Header = header
	req.Header.Set("User-Agent", "curfew")
	answer, err := p.Client.Do(req)
	if err != nil {
		return fmt.Errorf("alert: send: %w", withoutURL(err))
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // so that the connection can be used again; a long answer costs it
	return judge(answer)
}

func judge(answer *http.Response) error {
	code := answer.StatusCode
	err := fmt.Errorf("alert: send: the receiver answered %d", code)
	switch {
	case code/100 == 2:
		return nil
	case code/100 < 4 || IsPermanent(code):
		return backoff.Permanent(err)
	}
	if seconds, bad := strconv.Atoi(answer.Header.Get("Retry-After")); bad == nil && seconds >= 0 {
		return errors.Join(err, backoff.RetryAfter(seconds))
	}
	return err
}

// withoutURL removes the address from err: it may contain a secret, and errors are logged.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

// looked is what a face says was lost, and when that was looked at.
type looked struct {
	At   string `json:"looked_at"`
	Lost int64  `json:"lost_last_hour"`
}

// TestOneLook: while messages are lost fast, every face that shows what one look found has the same numbers, and the incidents cost as much as
// their queues have lost.
func TestOneLook(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	for i := range 3 {
		loses(t, c, fmt.Sprintf("orders.%d", i))
	}
	client := logIn(t, c)
	faces := map[string]func() looked{
		"incidents": c.incidentsLost, "queues": func() looked { return c.queuesLost(t) }, "first page": func() looked { return firstPageLost(t, c, client) },
		"status": func() (l looked) {
			check(t, json.Unmarshal([]byte(c.done(t, "GET", "curfew/status", "")), &l))
			return l
		},
	}
	eventually(t, startLimit, "all that is lost to be in incidents", func() bool {
		incidents, queues := faces["incidents"](), faces["queues"]()
		return incidents == queues && incidents.Lost > 0
	})
	said, again := map[string]map[string]int64{}, 0 // by look and face
	for range 40 {
		for name, face := range faces {
			l := face()
			if said[l.At] == nil {
				said[l.At] = map[string]int64{}
			}
			if before, is := said[l.At][name]; is {
				again++
				if before != l.Lost {
					t.Errorf("%s said at first %d lost and then %d, as of %s", name, before, l.Lost, l.At)
				}
			}
			said[l.At][name] = l.Lost
		}
		time.Sleep(100 * time.Millisecond)
	}
	most := 0
	for at, by := range said {
		for _, lost := range by {
			if lost != by["incidents"] && by["incidents"] > 0 {
				t.Errorf("as of %s the faces say %v", at, by)
				break
			}
		}
		most = max(most, len(by))
	}
	if most < len(faces) || again == 0 {
		t.Errorf("no look was seen by all faces: %v", said)
	}
}

// loses has messages expire in a queue until the test ends, some hundreds a second.
func loses(t *testing.T, c *curfew, queue string) {
	ch := openChannel(t, dial(t, c.url))
	_, err := ch.QueueDeclare(queue, true, false, false, false, amqp091.Table{"x-curfew-purpose": "work"})
	check(t, err)
	go func() {
		for t.Context().Err() == nil {
			for range 10 {
				_ = ch.PublishWithContext(t.Context(), "", queue, true, false, amqp091.Publishing{Expiration: "100"})
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
}

// incidentsLost is what the incidents cost.
func (c *curfew) incidentsLost() (sum looked) {
	_, text := c.request("guest", "guest", "GET", "/api/curfew/incidents", "")
	var answer struct {
		At        string                 `json:"looked_at"`
		Incidents []struct{ Lost int64 } `json:"incidents"`
	}
	_ = json.Unmarshal([]byte(text), &answer)
	sum.At = answer.At
	for _, i := range answer.Incidents {
		sum.Lost += i.Lost
	}
	return sum
}

// queuesLost adds up what the queues of a list lost, which is as of one look.
func (c *curfew) queuesLost(t *testing.T) (sum looked) {
	t.Helper()
	var list []looked
	check(t, json.Unmarshal([]byte(c.done(t, "GET", "queues", "")), &list))
	for _, q := range list {
		if sum.Lost += q.Lost; sum.At != "" && sum.At != q.At {
			t.Errorf("one list is as of %s and of %s", sum.At, q.At)
		}
		sum.At = q.At
	}
	return sum
}

var firstPageFigures = regexp.MustCompile(`(?s)data-looked-at="([^"]*)".*Lost, last hour.*?>([0-9,]+)<`)

// firstPageLost is what the first page says.
func firstPageLost(t *testing.T, c *curfew, client *http.Client) looked {
	t.Helper()
	r, err := client.Get(c.http + "/")
	check(t, err)
	defer r.Body.Close()
	page, err := io.ReadAll(r.Body)
	check(t, err)
	found := firstPageFigures.FindSubmatch(page)
	if found == nil {
		t.Fatalf("the page has no such figures:\n%s", page)
	}
	lost, err := strconv.ParseInt(strings.ReplaceAll(string(found[2]), ",", ""), 10, 64)
	check(t, err)
	return looked{string(found[1]), lost}
}

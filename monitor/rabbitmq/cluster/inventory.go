package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// Inventory is what is in one virtual host.
type Inventory struct {
	Server Server
	VHost  string
	Queues []Queue // by name
	// Seen has the times to live of messages, by queue. RabbitMQ does not know them: a
	// caller that observes or keeps the queues fills them in.
	Seen map[string]TTLStats
	// Notes say what could not be found out, and why.
	Notes []string
	// Unread says what RabbitMQ answered that could not be read, and which questions failed: unlike Notes, this is no lack of
	// permission, and concerns only the queues that it names, or all.
	Unread []string
}

// unread notes what could not be read about what.
func (i *Inventory) unread(what string, odd []string, err error) {
	if _, refused := errors.AsType[*denied](err); refused {
		i.Notes = append(i.Notes, what+": "+err.Error())
		return
	}
	if err != nil {
		odd = append(odd, err.Error())
	}
	for _, one := range odd {
		i.Unread = append(i.Unread, what+": "+one)
	}
}

// Queue finds a queue by its name; nil: no queue has that name.
func (i *Inventory) Queue(name string) *Queue {
	at, ok := slices.BinarySearchFunc(i.Queues, name, func(q Queue, name string) int { return strings.Compare(q.Name, name) })
	if !ok {
		return nil
	}
	return &i.Queues[at]
}

// Inventory lists the queues of the address's virtual host. Without the management API it
// lists only those in names, and knows little about them: ready messages, consumers, and
// whether they are exclusive. It changes nothing.
//
// RabbitMQ's statistics are up to five seconds old, and a new queue has none yet; names,
// types, flags and arguments are current.
//
// measured is what Watch.Measured returns: only of those queues statistics are asked for.
func (c *Cluster) Inventory(ctx context.Context, names []string, measured string) (*Inventory, error) {
	if c.api == nil {
		return c.declarePassively(ctx, names, "the address of the management API is not set")
	}
	i, err := c.askAPI(ctx, measured)
	if err == nil {
		c.listed.Store(true)
	}
	if refused, ok := errors.AsType[*denied](err); ok && !c.listed.Load() { // later it may be a proxy in between, and what is kept must not be forgotten
		return c.declarePassively(ctx, names, refused.Error()+" (it needs the tag monitoring)")
	}
	return i, err
}

// listedQueue is a queue in the list without statistics.
type listedQueue struct {
	Name       string
	Type       QueueType
	Durable    bool
	AutoDelete any  `json:"auto_delete"` // sometimes "undefined"
	Exclusive  bool // sometimes null
	Arguments  table
	State      string
	Policy     string // its name
	Effective  table  `json:"effective_policy_definition"` // 4.3 says it here, of quorum queues, and it is current; nil: it does not
	Ready      int64  `json:"messages_ready"`
	Unacked    int64  `json:"messages_unacknowledged"`
	Messages   int64  // also those put aside
}

// measuredQueue is a queue in the list with statistics.
type measuredQueue struct {
	Name         string
	Effective    *table        `json:"effective_policy_definition"` // nil: not known yet
	Ready        *int64        `json:"messages_ready"`              // nil: not known yet
	Unacked      int64         `json:"messages_unacknowledged"`
	Discarded    int64         `json:"messages_dlx"`
	MessageStats object[stats] `json:"message_stats"`
}

type rate struct{ Rate float64 }

// stats are the counters of what was published, and of basic.get.
type stats struct {
	Publish         int64
	Get             int64
	GetDetails      rate  `json:"get_details"`
	GetNoAck        int64 `json:"get_no_ack"`
	GetNoAckDetails rate  `json:"get_no_ack_details"`
	GetEmpty        int64 `json:"get_empty"`
	GetEmptyDetails rate  `json:"get_empty_details"`
}

const measuredColumns = "name,effective_policy_definition,messages_ready,messages_unacknowledged,messages_dlx,message_stats.publish," +
	"message_stats.get,message_stats.get_details.rate,message_stats.get_no_ack,message_stats.get_no_ack_details.rate," +
	"message_stats.get_empty,message_stats.get_empty_details.rate"

// askAPI puts three answers together: names and arguments are exact in the list without
// statistics, policies and reads are only in the one with them, and consumers in a list of
// their own, which lacks those of the last five seconds.
func (c *Cluster) askAPI(ctx context.Context, measured string) (*Inventory, error) {
	vhost := url.PathEscape(c.Address.VHost)
	var overview struct {
		Product string `json:"product_name"`
		Version string `json:"rabbitmq_version"`
		Cluster string `json:"cluster_name"`
	}
	if err := c.api.get(ctx, "overview?disable_stats=true", &overview); err != nil {
		return nil, err
	}
	listed, odd, err := list[listedQueue](ctx, c.api, "queues/"+vhost+"?disable_stats=true&enable_queue_totals=true")
	if err != nil {
		return nil, err
	}
	i := &Inventory{Server: Server{Product: overview.Product, Version: overview.Version, Cluster: overview.Cluster}, VHost: c.Address.VHost}
	i.unread("queues", odd, nil)
	i.Server.Product = cmp.Or(i.Server.Product, "RabbitMQ") // it says so from 3.8 on
	for _, l := range listed {
		autoDelete, _ := l.AutoDelete.(bool)
		unknown := UnknownGets | UnknownConsumers
		if l.Effective == nil {
			unknown |= UnknownPolicy
		}
		i.Queues = append(i.Queues, Queue{Name: l.Name, Type: l.Type, Durable: l.Durable, AutoDelete: autoDelete,
			Exclusive: l.Exclusive, State: l.State, Arguments: l.Arguments, Policy: l.Effective, Ready: l.Ready, Unacked: l.Unacked,
			Delayed: max(-1, l.Messages-l.Ready-l.Unacked), Unknown: unknown})
	}
	slices.SortFunc(i.Queues, func(a, b Queue) int { return strings.Compare(a.Name, b.Name) })
	c.addMeasured(ctx, i, vhost, measured)
	c.addPolicies(ctx, i, vhost, listed)
	c.addConsumers(ctx, i, vhost)
	return i, nil
}

// measure lists the statistics of the queues whose names match an expression, if that is one page; otherwise, and with "", of all.
func (c *Cluster) measure(ctx context.Context, vhost, names string) (all []measuredQueue, odd []string, err error) {
	path := "queues/" + vhost + "?columns=" + measuredColumns
	var page struct {
		Items []json.RawMessage
		Pages int `json:"page_count"`
	}
	if names == "" || c.api.get(ctx, path+"&page=1&page_size=500&use_regex=true&name="+url.QueryEscape(names), &page) != nil || page.Pages > 1 {
		return list[measuredQueue](ctx, c.api, path)
	}
	all, odd = entriesOf[measuredQueue](page.Items)
	return all, odd, nil
}

func (c *Cluster) addMeasured(ctx context.Context, i *Inventory, vhost, names string) {
	measured, odd, err := c.measure(ctx, vhost, names)
	if i.unread("statistics of queues", odd, err); err != nil {
		return
	}
	for _, m := range measured {
		q := i.Queue(m.Name)
		if q == nil {
			continue // it was declared since
		}
		if m.Effective != nil && q.Unknown&UnknownPolicy != 0 {
			q.Policy, q.Unknown = *m.Effective, q.Unknown&^UnknownPolicy
		}
		if m.Ready != nil {
			q.Ready, q.Unacked, q.Discarded = *m.Ready, m.Unacked, m.Discarded
		}
		s := m.MessageStats.value
		q.Published, q.Gets = s.Publish, s.Get+s.GetNoAck+s.GetEmpty
		q.Polled = c.polled(q.Name, q.Gets, s.GetDetails.Rate+s.GetNoAckDetails.Rate+s.GetEmptyDetails.Rate)
		q.Unknown &^= UnknownGets
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.gets, func(name string, _ read) bool { return i.Queue(name) == nil })
}

// polledFor is how long a queue counts as polled after it was read with basic.get.
const polledFor = 10 * time.Minute

// read is how often a queue was read with basic.get by the time of the last inventory.
type read struct {
	count int64
	at    time.Time // when the count was last seen to grow; zero: never
}

// polled takes in a queue's count and rate, and reports whether it was read recently. RabbitMQ has no
// event for basic.get, and the rate in its statistics covers only a few seconds.
func (c *Cluster) polled(queue string, count int64, rate float64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gets == nil {
		c.gets = map[string]read{}
	}
	last, known := c.gets[queue]
	if rate > 0 || known && count != last.count && count > 0 { // lower: its statistics have begun again, with a read
		last.at = time.Now()
	}
	last.count = count
	c.gets[queue] = last
	return !last.at.IsZero() && time.Since(last.at) < polledFor
}

// addPolicies finds out which settings apply to queues that have no statistics yet: those
// of the policy that RabbitMQ names for each. Where there are operator policies, too, only where dead letters go is certain: they cannot set that.
func (c *Cluster) addPolicies(ctx context.Context, i *Inventory, vhost string, listed []listedQueue) {
	if !slices.ContainsFunc(i.Queues, func(q Queue) bool { return q.Unknown&UnknownPolicy != 0 }) {
		return
	}
	var operator []any
	merged := c.api.get(ctx, "operator-policies/"+vhost, &operator) != nil || len(operator) > 0
	var policies []struct {
		Name       string
		Definition table
	}
	if c.api.get(ctx, "policies/"+vhost, &policies) != nil {
		return
	}
	definitions := map[string]table{"": nil}
	for _, p := range policies {
		if merged {
			maps.DeleteFunc(p.Definition, func(key string, _ any) bool { return !strings.HasPrefix(key, "dead-letter-") })
		}
		definitions[p.Name] = p.Definition
	}
	for _, l := range listed {
		definition, known := definitions[l.Policy]
		if q := i.Queue(l.Name); known && q.Unknown&UnknownPolicy != 0 {
			q.Policy = definition
			if !merged {
				q.Unknown &^= UnknownPolicy
			}
		}
	}
}

// consumersTimeout bounds the wait for the list of consumers: an older list could lack a consumer that has come since.
const consumersTimeout = 5 * time.Second

func (c *Cluster) addConsumers(ctx context.Context, i *Inventory, vhost string) {
	var user struct{ Tags any } // a list, or before 3.9 a string with commas
	if err := c.api.get(ctx, "whoami", &user); err != nil {
		i.unread("consumers", nil, err)
		return
	}
	tags := strings.FieldsFunc(fmt.Sprint(user.Tags), func(r rune) bool { return strings.ContainsRune("[], ", r) })
	if !slices.Contains(tags, "monitoring") && !slices.Contains(tags, "administrator") {
		i.Notes = append(i.Notes, "consumers: RabbitMQ shows those of other users only to a user with the tag monitoring")
		return
	}
	type listedConsumer struct {
		Tag       string `json:"consumer_tag"`
		Exclusive bool
		Queue     struct{ Name string }
		Arguments object[struct {
			Priority any `json:"x-priority"`
		}]
	}
	limited, cancel := context.WithTimeout(ctx, consumersTimeout)
	defer cancel()
	consumers, odd, err := list[listedConsumer](limited, c.api, "consumers/"+vhost)
	if i.unread("consumers", odd, err); err != nil || len(odd) > 0 { // one that is missing could be an application's
		return
	}
	for _, one := range consumers {
		if q := i.Queue(one.Queue.Name); q != nil {
			q.Attached = append(q.Attached, Consumer{one.Tag, one.Exclusive, one.Arguments.value.Priority})
		}
	}
	for at := range i.Queues {
		q := &i.Queues[at]
		q.Consumers, q.Unknown = len(q.Attached), q.Unknown&^UnknownConsumers
	}
}

// declarePassively asks for each name over AMQP.
func (c *Cluster) declarePassively(ctx context.Context, names []string, why string) (*Inventory, error) {
	conn, err := c.ConnectOnce(ctx, "inventory")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	i := &Inventory{Server: c.Server(), VHost: c.Address.VHost}
	i.Notes = append(i.Notes, why+": only queues that rules name exactly are known, and their types, arguments, policies and bindings are not")
	names = slices.Clone(names)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		ch, err := conn.Channel()
		if err != nil {
			return nil, fmt.Errorf("ask for queue %s: %w", name, err)
		}
		q := Queue{Name: name, Unknown: UnknownArguments | UnknownPolicy | UnknownGets | UnknownUnacked | UnknownConsumers}
		found, err := ch.QueueDeclarePassive(name, false, false, false, false, nil)
		refused, _ := errors.AsType[*amqp091.Error](err)
		switch {
		case err == nil:
			q.Ready, q.Consumers = int64(found.Messages), found.Consumers
			ch.Close()
		case refused == nil || refused.Code == amqp091.ChannelError || conn.IsClosed():
			return nil, fmt.Errorf("ask for queue %s: %w", name, err)
		case refused.Code == amqp091.NotFound:
			continue
		case refused.Code == amqp091.ResourceLocked:
			q.Exclusive = true
		default:
			i.Notes = append(i.Notes, fmt.Sprintf("queue %s: %s", name, refused.Reason))
		}
		i.Queues = append(i.Queues, q)
	}
	return i, nil
}

// Binding leads from an exchange to a queue.
type Binding struct {
	Exchange, Queue, RoutingKey string
	Arguments                   map[string]any
}

// Exchange is what is known of one exchange.
type Exchange struct {
	Name, Type string
	Arguments  table
}

// Topology lists the exchanges of the virtual host by name, and the bindings of its queues
// except those to the default exchange. It needs the management API.
func (c *Cluster) Topology(ctx context.Context) (exchanges map[string]Exchange, bindings []Binding, err error) {
	if c.api == nil {
		return nil, nil, errors.New("only the management API knows the bindings, and its address is not set")
	}
	vhost := url.PathEscape(c.Address.VHost)
	var bound []struct {
		Source, Destination string
		Kind                string `json:"destination_type"`
		RoutingKey          string `json:"routing_key"`
		Arguments           table
	}
	if err := c.api.get(ctx, "bindings/"+vhost, &bound); err != nil {
		return nil, nil, err
	}
	for _, b := range bound {
		if b.Kind == "queue" && b.Source != "" {
			bindings = append(bindings, Binding{Exchange: b.Source, Queue: b.Destination, RoutingKey: b.RoutingKey, Arguments: b.Arguments})
		}
	}
	var list []Exchange
	if err := c.api.get(ctx, "exchanges/"+vhost+"?disable_stats=true", &list); err != nil {
		return nil, nil, err
	}
	exchanges = map[string]Exchange{}
	for _, x := range list {
		exchanges[x.Name] = x
	}
	return exchanges, bindings, nil
}

// Bound is one binding of an exchange.
type Bound struct {
	Destination string
	Queue       bool   // otherwise it is an exchange
	Key         string // RabbitMQ's own name for the routing key and the arguments together
}

// Bound returns the type of an exchange, and lists what is bound to it. It needs the management API.
func (c *Cluster) Bound(ctx context.Context, exchange string) (kind string, all []Bound, err error) {
	if c.api == nil {
		return "", nil, errors.New("the address of the management API is not set")
	}
	path := "exchanges/" + url.PathEscape(c.Address.VHost) + "/" + url.PathEscape(exchange)
	var found Exchange
	if err := c.api.get(ctx, path+"?disable_stats=true", &found); err != nil {
		return "", nil, err
	}
	var bound []struct {
		Destination string
		Kind        string `json:"destination_type"`
		Key         string `json:"properties_key"`
	}
	if err := c.api.get(ctx, path+"/bindings/source", &bound); err != nil {
		return found.Type, nil, err
	}
	for _, b := range bound {
		all = append(all, Bound{b.Destination, b.Kind == "queue", b.Key})
	}
	return found.Type, all, nil
}

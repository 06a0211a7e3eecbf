package integration

import amqp091 "github.com/rabbitmq/amqp091-go"

const (
	foreignQueue    = "channel 403 ACCESS_REFUSED - access to queue 'foreign.q' in vhost '/' refused for user 'limited'"
	foreignExchange = "channel 403 ACCESS_REFUSED - access to exchange 'foreign.x' in vhost '/' refused for user 'limited'"
	defaultExchange = "channel 403 ACCESS_REFUSED - operation not permitted on the default exchange"
	sincePassive    = "any permission on the name, as RabbitMQ wants since 4.2.7, so that names are not found out by trying"
)

// doing is a vector that closes what it closes, or "nothing".
func doing(name, want string, do func(s *session, ch *amqp091.Channel) error) vector {
	return vector{name: name, want: want, ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error { return do(s, ch) })
	}}
}

func declareQueue(ch *amqp091.Channel, name string, args amqp091.Table) error {
	_, err := ch.QueueDeclare(name, false, true, true, false, args)
	return err
}

func declareExchange(ch *amqp091.Channel, name string, args amqp091.Table) error {
	return ch.ExchangeDeclare(name, "direct", false, true, false, false, args)
}

func publishTo(s *session, ch *amqp091.Channel, exchange, key string, m amqp091.Publishing) error {
	return ch.PublishWithContext(s.t.Context(), exchange, key, false, false, m)
}

var accessVectors = []vector{
	doing("declare own queue", "nothing", func(s *session, ch *amqp091.Channel) error { return declareQueue(ch, s.name, nil) }),
	doing("declare foreign queue", foreignQueue, func(s *session, ch *amqp091.Channel) error { return declareQueue(ch, "foreign.q", nil) }),
	doing("dead-letter to own", "nothing", func(s *session, ch *amqp091.Channel) error {
		return declareQueue(ch, s.name, amqp091.Table{"x-dead-letter-exchange": "own.direct"})
	}),
	doing("dead-letter to foreign", foreignExchange, func(s *session, ch *amqp091.Channel) error {
		return declareQueue(ch, s.name, amqp091.Table{"x-dead-letter-exchange": "foreign.x"})
	}),
	doing("dead-letter to default", "channel 403 ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'limited'",
		func(s *session, ch *amqp091.Channel) error {
			return declareQueue(ch, s.name, amqp091.Table{"x-dead-letter-exchange": ""})
		}),
	doing("dead-letter again", "nothing", func(s *session, ch *amqp091.Channel) error { // of a queue that is there, only configure is asked
		args := amqp091.Table{"x-dead-letter-exchange": "foreign.x"}
		if _, err := openChannel(s.t, dial(s.t, guestURL(s.url))).QueueDeclare(s.name, false, true, false, false, args); err != nil {
			return err
		}
		_, err := ch.QueueDeclare(s.name, false, true, false, false, args)
		return err
	}),
	doing("declare own exchange", "nothing", func(s *session, ch *amqp091.Channel) error { return declareExchange(ch, s.name, nil) }),
	doing("declare foreign exchange", foreignExchange, func(s *session, ch *amqp091.Channel) error { return declareExchange(ch, "foreign.x", nil) }),
	doing("alternate own", "nothing", func(s *session, ch *amqp091.Channel) error {
		return declareExchange(ch, s.name, amqp091.Table{"alternate-exchange": "own.direct"})
	}),
	doing("alternate foreign", foreignExchange, func(s *session, ch *amqp091.Channel) error {
		return declareExchange(ch, s.name, amqp091.Table{"alternate-exchange": "foreign.x"})
	}),
	doing("declare default exchange", defaultExchange, func(s *session, ch *amqp091.Channel) error { return declareExchange(ch, "", nil) }),
	{name: "passive foreign queue", want: foreignQueue, rabbitmq: "nothing", why: sincePassive, ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			_, err := ch.QueueDeclarePassive("foreign.q", false, false, false, false, nil)
			return err
		})
	}},
	{name: "passive foreign exchange", want: foreignExchange, rabbitmq: "nothing", why: sincePassive, ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			return ch.ExchangeDeclarePassive("foreign.x", "direct", false, false, false, false, nil)
		})
	}},
	doing("delete foreign queue", foreignQueue, func(s *session, ch *amqp091.Channel) error {
		_, err := ch.QueueDelete("foreign.q", false, false, false)
		return err
	}),
	doing("delete foreign exchange", foreignExchange, func(s *session, ch *amqp091.Channel) error { return ch.ExchangeDelete("foreign.x", false, false) }),
	doing("delete system exchange", "channel 403 ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed",
		func(s *session, ch *amqp091.Channel) error { return ch.ExchangeDelete("amq.direct", false, false) }),
	doing("delete default exchange", defaultExchange, func(s *session, ch *amqp091.Channel) error { return ch.ExchangeDelete("", false, false) }),
	doing("bind own", "nothing", func(s *session, ch *amqp091.Channel) error {
		return ch.QueueBind("own.q", "k", "own.direct", false, nil)
	}),
	doing("bind to foreign exchange", foreignExchange, func(s *session, ch *amqp091.Channel) error {
		return ch.QueueBind("own.q", "k", "foreign.x", false, nil)
	}),
	doing("bind foreign queue", foreignQueue, func(s *session, ch *amqp091.Channel) error {
		return ch.QueueBind("foreign.q", "k", "own.direct", false, nil)
	}),
	doing("bind to default exchange", defaultExchange, func(s *session, ch *amqp091.Channel) error { return ch.QueueBind("own.q", "k", "", false, nil) }),
	doing("unbind from foreign exchange", foreignExchange, func(s *session, ch *amqp091.Channel) error { return ch.QueueUnbind("own.q", "k", "foreign.x", nil) }),
	doing("bind exchange to foreign", foreignExchange, func(s *session, ch *amqp091.Channel) error {
		return ch.ExchangeBind("own.direct", "k", "foreign.x", false, nil)
	}),
	doing("bind foreign exchange", foreignExchange, func(s *session, ch *amqp091.Channel) error {
		return ch.ExchangeBind("foreign.x", "k", "own.direct", false, nil)
	}),
	doing("bind by allowed key", "nothing", func(s *session, ch *amqp091.Channel) error {
		return ch.QueueBind("own.q", "read.all", "own.topic", false, nil)
	}),
	doing("bind by refused key", "channel 403 ACCESS_REFUSED - access to topic 'other.#' in exchange 'own.topic' in vhost '/' refused for user 'limited'",
		func(s *session, ch *amqp091.Channel) error {
			return ch.QueueBind("own.q", "other.#", "own.topic", false, nil)
		}),
	doing("publish", "nothing", func(s *session, ch *amqp091.Channel) error {
		return publishTo(s, ch, "own.direct", "k", amqp091.Publishing{})
	}),
	doing("publish to foreign", foreignExchange, func(s *session, ch *amqp091.Channel) error {
		return publishTo(s, ch, "foreign.x", "k", amqp091.Publishing{})
	}),
	doing("publish to default", "channel 403 ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'limited'",
		func(s *session, ch *amqp091.Channel) error {
			return publishTo(s, ch, "", "own.q", amqp091.Publishing{})
		}),
	doing("publish to missing", "channel 404 NOT_FOUND - no exchange 'own.missing' in vhost '/'", func(s *session, ch *amqp091.Channel) error {
		return publishTo(s, ch, "own.missing", "k", amqp091.Publishing{UserId: "guest"})
	}),
	doing("publish to foreign missing", "channel 403 ACCESS_REFUSED - access to exchange 'foreign.missing' in vhost '/' refused for user 'limited'",
		func(s *session, ch *amqp091.Channel) error {
			return publishTo(s, ch, "foreign.missing", "k", amqp091.Publishing{})
		}),
	doing("publish to internal", "channel 403 ACCESS_REFUSED - cannot publish to internal exchange 'own.internal' in vhost '/'",
		func(s *session, ch *amqp091.Channel) error {
			return publishTo(s, ch, "own.internal", "k", amqp091.Publishing{})
		}),
	doing("publish by allowed key", "nothing", func(s *session, ch *amqp091.Channel) error {
		return publishTo(s, ch, "own.topic", "limited.x", amqp091.Publishing{})
	}),
	doing("publish by refused key", "channel 403 ACCESS_REFUSED - access to topic 'read.x' in exchange 'own.topic' in vhost '/' refused for user 'limited'",
		func(s *session, ch *amqp091.Channel) error {
			return publishTo(s, ch, "own.topic", "read.x", amqp091.Publishing{UserId: "guest"})
		}),
	doing("publish as another", "channel 406 PRECONDITION_FAILED - user_id property set to 'guest' but authenticated user was 'limited'",
		func(s *session, ch *amqp091.Channel) error {
			return publishTo(s, ch, "own.direct", "k", amqp091.Publishing{UserId: "guest", Expiration: "never"})
		}),
	{name: "publish as impersonator", want: "nothing", ask: func(s *session) string {
		url := guestURL(s.url)
		other := &session{t: s.t, url: url, conn: dial(s.t, userURL(url, "impersonator")), name: s.name}
		return other.closing(func(ch *amqp091.Channel) error {
			return publishTo(s, ch, "own.direct", "k", amqp091.Publishing{UserId: "guest"})
		})
	}},
	doing("consume", "nothing", func(s *session, ch *amqp091.Channel) error {
		_, err := ch.Consume("own.q", "", true, false, false, false, nil)
		return err
	}),
	doing("consume foreign", foreignQueue, func(s *session, ch *amqp091.Channel) error {
		_, err := ch.Consume("foreign.q", "", true, false, false, false, nil)
		return err
	}),
	doing("consume foreign missing", "channel 403 ACCESS_REFUSED - access to queue 'foreign.missing' in vhost '/' refused for user 'limited'",
		func(s *session, ch *amqp091.Channel) error {
			_, err := ch.Consume("foreign.missing", "", true, false, false, false, nil)
			return err
		}),
	doing("get foreign", foreignQueue, func(s *session, ch *amqp091.Channel) error {
		_, _, err := ch.Get("foreign.q", true)
		return err
	}),
	doing("purge foreign", foreignQueue, func(s *session, ch *amqp091.Channel) error {
		_, err := ch.QueuePurge("foreign.q", false)
		return err
	}),
	doing("direct reply-to", "nothing", func(s *session, ch *amqp091.Channel) error { // nobody's to read, so everybody's
		_, err := ch.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
		return err
	}),
	{name: "update secret", want: "ok", ask: func(s *session) string {
		if err := s.conn.UpdateSecret("another", "rotation"); err != nil {
			return err.Error()
		}
		return "ok"
	}},
}

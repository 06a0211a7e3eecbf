# One side of a deadline run, with Ruby's bunny. The roles and their lines are those of ../pika/deadlines.py.
require "bunny"

$stdout.sync = true

def now_us = Process.clock_gettime(Process::CLOCK_REALTIME, :microsecond)

def declare(channel, queue, dlx, dlq)
  exchange = channel.direct(dlx, durable: true)
  channel.queue(dlq, durable: true).bind(exchange, routing_key: queue)
  channel.queue(queue, durable: true, arguments: {"x-dead-letter-exchange" => dlx})
end

def publish(channel, queue)
  channel.confirm_select
  $stdin.each_line do |line|
    number, ttl = line.split
    before = now_us
    channel.default_exchange.publish(number, routing_key: queue, expiration: ttl, persistent: true, message_id: number)
    raise "message #{number} was not confirmed" unless channel.wait_for_confirms
    puts "sent #{number} #{ttl} #{before} #{now_us}"
  end
end

def collect(channel, queue, count)
  channel.prefetch(500)
  left = Integer(count)
  done = Queue.new
  channel.queue(queue, durable: true).subscribe(manual_ack: true) do |delivery, _properties, body|
    at = now_us
    channel.ack(delivery.delivery_tag)
    puts "got #{body} #{at}"
    left -= 1
    done << true if left.zero?
  end
  puts "ready"
  done.pop
end

def get(channel, queue)
  delivery, _properties, body = channel.basic_get(queue, manual_ack: true)
  return puts("empty") if delivery.nil?
  puts "head #{body}"
  channel.nack(delivery.delivery_tag, false, true)
end

role, url, *rest = ARGV
connection = Bunny.new(url).start
send(role, connection.create_channel, *rest)
connection.close

"""Does harm to a cluster under Patroni (patroni_cluster.py), and to stampd: one outage after the other, each until something has come of it."""
import signal
import time

from network import HOST
from patroni_cluster import send
from saboteur import Saboteur, pid_of, signal_to
from stack import children, wait_until

TAKEN_OVER_S = 40  # somebody else would have taken over by then
SETTLED_S = 40     # after an outage another could take over again by then; else the next comes to what there is
MOMENTS_S = (0.3, 1, 2, 4)
LONG_S = (2, 4, 8, 12)  # the lease of the leader ends within
SLICE_S = 0.2


class Outages(Saboteur):
    def __init__(self, cluster, stacks, seed, names=None, say=print, is_pair=False):
        """`names`: these, each once and in this order, and then no more; none at all: no harm is done."""
        super().__init__(stacks, [], f'{seed}/outages', only=(), is_pair=is_pair)
        self.cluster, self.network, self.stopped_pids = cluster, cluster.network, []
        self.planned, self.is_calm = None if names is None else list(names), names == ()
        self.say, self.takeovers, self.timelines = say, 0, 1

    # --- a round ---

    def run(self, seconds, goes_on=lambda: True):
        end = time.monotonic() + seconds
        while time.monotonic() < end and goes_on() and not self.is_done():
            if self.is_calm:
                time.sleep(SLICE_S)
            else:
                self.outage(self.planned.pop(0) if self.planned else self.draw())
                if self.is_pair:
                    self.start_missing()  # hosts that have lost the lease have ended

    def is_done(self):
        return self.planned == [] and not self.is_calm

    def draw(self):
        names, weights = zip(*OUTAGES, *PAIR_OUTAGES if self.is_pair else ())
        return self.dice.choices(names, weights)[0]

    def outage(self, name):
        begun = time.monotonic()
        leader = wait_until(self.cluster.leader, what='a leader')
        getattr(self, name.replace(' ', '_'))(leader)
        self.mend()
        mended = time.monotonic()
        self.done[name] = self.done.get(name, 0) + 1
        is_settled, after = self.cluster.settles(SETTLED_S, self.cluster.is_safe), self.cluster.leader()
        self.takeovers += after is not None and after is not leader
        self.say(f'{name}: {leader.name}, then {after.name if after else "nobody"}; {mended - begun:.0f} s, and {time.monotonic() - mended:.0f} s until '
                 f'{"another could take over" if is_settled else "the next"}')

    def mend(self):
        """Whatever was stopped goes on, what was ended is begun again, nobody is cut off."""
        self.resume()
        for pid in reversed(self.stopped_pids):
            send(pid, signal.SIGCONT)
        self.stopped_pids.clear()
        self.network.mend()
        self.cluster.start()

    def heal(self):
        self.mend()
        self.cluster.settle()
        (self.timelines,), = self.cluster.leader().psql('select timeline_id from pg_control_checkpoint()')
        super().heal()
        lost = [name for stack in self.stacks for name, value in stack.metrics().items() if name.startswith('stampd_history_lost') and value]
        assert not lost, f'commits that were acknowledged are lost: {lost}'

    # --- how ---

    def halt(self, pids):
        for pid in pids:
            send(pid, signal.SIGSTOP)
            self.stopped_pids.append(pid)

    def hold(self, moments=MOMENTS_S):
        time.sleep(self.dice.choice(moments))

    def until_taken_over(self, leader):
        """True: another is the leader.  There may be none that is allowed to be."""
        end = time.monotonic() + TAKEN_OVER_S
        while time.monotonic() < end:
            now = self.cluster.leader()
            if now and now is not leader:
                return True
            time.sleep(SLICE_S)
        return False

    def until_commits_wait(self, leader):
        """At most for some seconds: Patroni has the primary wait for nobody when the standby stays away."""
        end = time.monotonic() + 5
        while time.monotonic() < end and not leader.psql("select 1 from pg_stat_activity where wait_event = 'SyncRep'"):
            time.sleep(0.05)

    def standbys(self, leader):
        return self.cluster.others(leader)

    # --- processes of the cluster ---

    def kill_the_primary(self, leader):
        """PostgreSQL alone: Patroni begins it again, or another takes over."""
        send(leader.server(), signal.SIGKILL)
        self.hold()

    def kill_the_host_of_the_primary(self, leader):
        leader.kill()
        if self.dice.random() < 0.8:
            self.until_taken_over(leader)

    def kill_Patroni_of_the_primary(self, leader):
        """PostgreSQL goes on, and does not know that another has taken over."""
        leader.patroni.kill()
        self.until_taken_over(leader)
        self.hold((1, 3, 6))
        self.watchdog_bites(leader)

    def kill_Patroni_for_a_moment(self, leader):
        leader.patroni.kill()
        self.hold()
        self.watchdog_bites(leader)

    def watchdog_bites(self, leader):
        """What was left without its Patroni ends, later than a watchdog would end it.  A Patroni that is started beside a former primary
        first has it wait for no standby, and then steps back: commits that wait would be acknowledged, and are lost (Patroni 3.0.2)."""
        if self.cluster.leader() is not leader:
            leader.kill()

    def stop_the_host_of_the_primary(self, leader):
        """It goes on as the primary that it was, for as long as its Patroni needs to see that it is none."""
        self.halt([leader.patroni.child.pid, *leader.servers()])
        if self.dice.random() < 0.6:
            self.until_taken_over(leader)
        self.hold()

    def stop_the_primary(self, leader):
        self.halt(leader.servers())
        self.hold(LONG_S)

    def stop_Patroni_of_the_primary(self, leader):
        self.halt([leader.patroni.child.pid])
        if self.dice.random() < 0.6:
            self.until_taken_over(leader)
        self.hold()

    def kill_etcd(self, leader):
        self.cluster.etcd.kill()
        self.hold(LONG_S)

    def stop_etcd(self, leader):
        self.halt([self.cluster.etcd.child.pid])
        self.hold(LONG_S)

    def kill_a_standby(self, leader):
        standby = self.dice.choice(self.standbys(leader))
        if self.dice.random() < 0.5:
            standby.kill()
        else:
            send(standby.server(), signal.SIGKILL)
        self.hold()

    def hang_the_standbys(self, leader):
        for standby in self.standbys(leader):
            self.halt(standby.servers())
        self.until_commits_wait(leader)
        self.hold(LONG_S)

    # --- cuts ---

    def cut_the_primary_from_its_standbys(self, leader):
        self.network.cut_off(leader.host, [standby.host for standby in self.standbys(leader)])
        self.until_commits_wait(leader)
        self.hold(LONG_S)

    def cut_the_primary_from_etcd(self, leader):
        """It steps back when it could not renew its lease."""
        self.network.cut(leader.host, self.cluster.etcd_host)
        self.until_taken_over(leader)
        self.hold()

    def cut_the_primary_from_etcd_without_Patroni(self, leader):
        """What Patroni would do about it, it cannot do any more."""
        self.network.cut_off(leader.host, [self.cluster.etcd_host, *(standby.host for standby in self.standbys(leader))])
        leader.patroni.kill()
        self.until_taken_over(leader)
        self.hold((1, 3, 6))
        leader.kill()

    def cut_the_primary_from_stampd(self, leader):
        self.network.cut(leader.host, HOST)
        self.hold(LONG_S)

    def cut_off_the_primary(self, leader):
        self.network.cut_off(leader.host, self.cluster.hosts())
        self.until_taken_over(leader)
        self.hold()

    def cut_off_all_but_stampd(self, leader):
        """The former primary is reached, and replaced."""
        self.network.cut_off(leader.host, [host for host in self.cluster.hosts() if host != HOST])
        self.until_taken_over(leader)
        self.hold()

    def cut_off_stampd(self, leader):
        self.network.cut_off(HOST, [node.host for node in self.cluster.nodes])
        self.hold(LONG_S)

    # --- commits ---

    def lose_a_host_during_commits(self, leader):
        """They wait for a standby that never gets them."""
        self.network.cut_off(leader.host, [standby.host for standby in self.standbys(leader)])
        self.until_commits_wait(leader)
        leader.kill()
        self.network.mend()
        self.until_taken_over(leader)

    def crash_during_commits(self, leader):
        """They wait for a standby, and are there when the primary has begun again."""
        if self.dice.random() < 0.5:
            self.network.cut_off(leader.host, [standby.host for standby in self.standbys(leader)])
        else:
            for standby in self.standbys(leader):
                self.halt(standby.servers())
        self.until_commits_wait(leader)
        send(leader.server(), signal.SIGKILL)
        self.hold()

    # --- planned ---

    def switch_over(self, leader):
        candidate = next((node for node in self.standbys(leader) if node.answers('sync')), None)
        if candidate:
            self.cluster.switch(leader, candidate)

    def switch_over_while_workers_die(self, leader):
        self.kill_several_workers()
        self.switch_over(leader)
        self.kill_several_workers()

    # --- stampd ---

    def end_stampd_while_the_primary_dies(self, leader):
        """What it knows of the history is in a file."""
        leader.kill()
        for stack in self.stacks:
            self.resume()
            stack.step('stampd', 'stop', 'now')
        self.until_taken_over(leader)
        for stack in self.stacks:
            stack.step('stampd', 'start')

    def kill_a_host_of_stampd_with_the_primary(self, leader):
        leader.kill()
        self.kill_a_host()
        self.until_taken_over(leader)

    def stop_a_host_of_stampd_while_the_primary_dies(self, leader):
        self.stop_a_host()
        leader.kill()
        self.until_taken_over(leader)

    def switch_over_while_a_host_of_stampd_dies(self, leader):
        self.kill_a_host()
        self.switch_over(leader)

    def kill_a_host_of_stampd(self, leader):
        self.kill_a_host()
        self.hold()

    def kill_a_host(self):
        """All of its stampd; it is begun again when the outage is over."""
        master = pid_of(self.any_stack(), 'stampd')
        for pid in [master, *children(master)] if master else []:
            signal_to(pid, signal.SIGKILL)

    def kill_the_managers_of_tasks(self, leader):
        self.kill_the_manager()
        signal_to(leader.server(), signal.SIGKILL)
        self.hold()


OUTAGES = [('kill the primary', 10), ('kill the host of the primary', 10), ('kill Patroni of the primary', 10), ('kill Patroni for a moment', 3),
           ('stop the host of the primary', 10), ('stop the primary', 6), ('stop Patroni of the primary', 6), ('kill etcd', 4), ('stop etcd', 3),
           ('kill a standby', 4), ('hang the standbys', 6), ('cut the primary from its standbys', 8), ('cut the primary from etcd', 6),
           ('cut the primary from etcd without Patroni', 5), ('cut the primary from stampd', 6), ('cut off the primary', 8),
           ('cut off all but stampd', 6), ('cut off stampd', 4), ('lose a host during commits', 10), ('crash during commits', 10), ('switch over', 8),
           ('switch over while workers die', 4), ('end stampd while the primary dies', 3), ('kill the managers of tasks', 2)]
# With hosts = pair.
PAIR_OUTAGES = [('kill a host of stampd', 10), ('kill a host of stampd with the primary', 10), ('stop a host of stampd while the primary dies', 10),
                ('switch over while a host of stampd dies', 10)]

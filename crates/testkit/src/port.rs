//! A port that stays one's own while a server comes and goes: nobody else on the machine is given it meanwhile.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// A port on loopback. It is bound here and nobody listens, so the system gives it to none of those who take any port; a
/// server that asks for this one gets it, because both say that they share the address (`SO_REUSEADDR`).
#[derive(Debug)]
pub struct Port {
    _held: OwnedFd,
    address: SocketAddr,
}

impl Port {
    /// One that nobody has.
    #[track_caller]
    pub fn reserve() -> Self {
        let held =
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .expect("a socket");
        rustix::net::sockopt::set_socket_reuseaddr(&held, true).expect("a socket can be set up");
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        rustix::net::bind(&held, &any).expect("there is a free port");
        let address = rustix::net::getsockname(&held).expect("a bound socket has an address");
        let address = SocketAddrV4::try_from(address).expect("it was bound to one");
        Self { _held: held, address: address.into() }
    }

    /// Where a server listens that is to have it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_server_comes_and_goes_on_its_port_and_nobody_is_there_in_between() {
        let port = Port::reserve();
        for _ in 0..3 {
            assert!(TcpStream::connect(port.address()).is_err());
            let server = TcpListener::bind(port.address()).unwrap();
            let client = TcpStream::connect(port.address()).unwrap();
            // The server's side is closed first, as when it is killed.
            drop(server.accept().unwrap());
            drop((server, client));
        }
        let others: Vec<_> = (0..500).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        assert!(others.iter().all(|other| other.local_addr().unwrap() != port.address()));
    }
}

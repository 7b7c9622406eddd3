//! The stub model server, for trying an agent by hand: `cargo run -p homing-testkit --example stub-model -- [PORT [DIR]]`.
//!
//! Prints its address, then a line for each request. With a directory, it keeps each request's body there. It runs until
//! it is killed.

use std::path::PathBuf;

use homing_testkit::StubModel;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().map_or(0, |port| port.parse().expect("the first argument is a port"));
    let bodies = arguments.next().map(PathBuf::from);
    if let Some(bodies) = &bodies {
        std::fs::create_dir_all(bodies).expect("a directory for bodies");
    }
    let stub = StubModel::start_at(port);
    println!("{}", stub.url());
    stub.tell_about_requests(bodies);
    loop {
        std::thread::park();
    }
}

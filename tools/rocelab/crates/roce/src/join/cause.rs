// SPDX-License-Identifier: GPL-2.0-or-later
//! Why a frame has no record at one end, or a record no frame.

macro_rules! causes {
    ($(#[$doc:meta])* $name:ident { $($(#[$word:meta])* $variant:ident $text:literal $clear:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$word])* $variant),* }

        impl $name {
            /// All of them, in the order of `as usize`.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// A word for files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// It says what became of the packet, or that nothing can tell.
            #[must_use]
            pub const fn explained(self) -> bool {
                match self { $(Self::$variant => $clear),* }
            }
        }
    };
}

causes! {
    /// What is known of a packet's way from the sender's driver to the capture.
    Sent {
        /// Frame and record belong together.
        Matched "matched" true,
        /// A frame more of the same bytes: the network copied it.
        Copy "copy" true,
        /// A frame whose ICRC is wrong: its bytes do not say which packet it was.
        Damaged "damaged" true,
        /// A frame whose sender is not traced.
        NotTraced "not_traced" true,
        /// A frame that the sender's probe was told to leave out, by sampling or a filter.
        NotRecorded "not_recorded" true,
        /// A frame whose record was lost by the probe, as it says itself.
        RecordLost "record_lost" true,
        /// A record that never came to the network device: dropped by netfilter, the neighbour's
        /// queue or the queueing discipline.
        BeforeDevice "before_device" true,
        /// A record that the device was given, without a frame: lost before the capture point.
        BeforeCapture "before_capture" true,
        /// A record of a packet that the driver did not send after all.
        Dropped "dropped" true,
        /// A record of a packet that stayed on its host.
        Loopback "loopback" true,
        /// Frames and records of equal bytes, not equally many: no telling which is which.
        Ambiguous "ambiguous" true,
        /// The receiver had it, and the capture does not have it.
        NotCaptured "not_captured" false,
        /// Nothing accounts for it.
        Unexplained "unexplained" false,
    }
}

causes! {
    /// What is known of a packet's way from the capture to the receiver's driver.
    Received {
        /// Frame and record belong together.
        Matched "matched" true,
        /// A record more of the same bytes: the network copied it behind the capture point.
        Copy "copy" true,
        /// The receiver's driver dropped it on arrival, as its record says.
        Dropped "dropped" true,
        /// The frame's ICRC is wrong: the receiver's driver drops it.
        Damaged "damaged" true,
        /// The receiver is not traced.
        NotTraced "not_traced" true,
        /// The receiver's probe was told to leave it out, by sampling or a filter.
        NotRecorded "not_recorded" true,
        /// Multicast: any number of receivers, not joined.
        Multicast "multicast" true,
        /// No record: lost behind the capture point, or dropped by the driver on arrival.
        BehindCapture "behind_capture" true,
        /// No record, from a probe that says it lost some: lost on the way, or only its record.
        LostOrRecordLost "lost_or_record_lost" true,
        /// A record of a packet that never left its host.
        Loopback "loopback" true,
        /// Frames and records of equal bytes, not equally many: no telling which is which.
        Ambiguous "ambiguous" true,
        /// A record, and the capture has no frame of it.
        NotCaptured "not_captured" false,
    }
}
